"""What run files hold and what Slipway answers.

Generated from schema/run.schema.json and schema/answers.schema.json by `npm run python:types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

__all__ = [
    "CheckpointOrigin",
    "Event",
    "Issue",
    "LogLine",
    "NeuronPlan",
    "NeuronPlanLayoutsItem",
    "NeuronPlanLayoutsItemMemoryGiB",
    "Plan",
    "PlanMemoryGiB",
    "PlanUsd",
    "RunFile",
    "RunFileAcknowledgeItem",
    "RunFileCheckpoints",
    "RunFileCheckpointsMemory3",
    "RunFileCode",
    "RunFileCompute",
    "RunFileComputeAlternativesItem",
    "RunFileComputeInstanceCount2",
    "RunFileComputeInstanceGroupsItem",
    "RunFileComputePlacement",
    "RunFileComputePlacementUltraServersItem",
    "RunFileDataItem",
    "RunFileDataItemEfs",
    "RunFileDataItemFsxLustre",
    "RunFileDistribution",
    "RunFileImage",
    "RunFileLimits",
    "RunFileModel",
    "RunFileModelArchitecture",
    "RunFileModelArchitectureLatentAttention",
    "RunFileModelArchitectureLogitSoftcap",
    "RunFileModelArchitectureRopeScaling",
    "RunFileModelArchitectureRopeScaling2",
    "RunFileModelArchitectureRopeScaling3",
    "RunFileModelArchitectureRouting",
    "RunFileModelArchitectureSlidingWindow",
    "RunFileNetwork",
    "RunFileObservability",
    "RunFileObservabilityMetricsItem",
    "RunFileObservabilityMlflow",
    "RunFileObservabilityWandb",
    "RunFileOutput",
    "RunFileProgress",
    "RunFileTokenizer",
    "RunFileTraining",
    "RunFileTrainingLora",
    "RunFileTrainingMixtureItem",
    "Status",
    "StatusAttemptsItem",
    "StatusConfiguration",
    "StatusHandOver",
    "StatusSpareInstances",
    "StatusTimelineItem",
]


class RunFileModelArchitectureRouting(TypedDict, total=False):
    score: Literal["softmax", "sigmoid"]
    normalise: bool
    bias: bool
    groups: int
    topGroups: int


class RunFileModelArchitectureSlidingWindow(TypedDict):
    size: int
    pattern: Union[Literal["all", "alternate"], list[int]]


class RunFileModelArchitectureLogitSoftcap(TypedDict, total=False):
    attention: float
    final: float


class _RunFileModelArchitectureLatentAttention(TypedDict):
    kvRank: int
    nopeHeadSize: int
    ropeHeadSize: int
    valueHeadSize: int


class RunFileModelArchitectureLatentAttention(_RunFileModelArchitectureLatentAttention, total=False):
    qRank: int


class RunFileModelArchitectureRopeScaling(TypedDict):
    type: Literal["linear"]
    factor: float


class RunFileModelArchitectureRopeScaling2(TypedDict):
    type: Literal["llama3"]
    factor: float
    lowFreqFactor: float
    highFreqFactor: float
    originalMaxPositionEmbeddings: int


class _RunFileModelArchitectureRopeScaling3(TypedDict):
    type: Literal["yarn"]
    factor: float
    originalMaxPositionEmbeddings: int


class RunFileModelArchitectureRopeScaling3(_RunFileModelArchitectureRopeScaling3, total=False):
    betaFast: float
    betaSlow: float
    attentionFactor: float
    truncate: bool
    mscale: float
    mscaleAllDim: float


class _RunFileModelArchitecture(TypedDict):
    layers: int
    hiddenSize: int
    attentionHeads: int
    ffnHiddenSize: int
    vocabularySize: int


class RunFileModelArchitecture(_RunFileModelArchitecture, total=False):
    kvHeads: int
    headSize: int
    gatedMlp: bool
    tiedEmbeddings: bool
    experts: int
    expertsPerToken: int
    expertFfnHiddenSize: int
    sharedExperts: int
    denseLayers: Union[int, list[int]]
    routing: RunFileModelArchitectureRouting
    qkNorm: bool
    attentionBias: bool
    slidingWindow: RunFileModelArchitectureSlidingWindow
    attentionSinks: bool
    logitSoftcap: RunFileModelArchitectureLogitSoftcap
    latentAttention: RunFileModelArchitectureLatentAttention
    ropeTheta: float
    ropeScaling: Union[RunFileModelArchitectureRopeScaling, RunFileModelArchitectureRopeScaling2, RunFileModelArchitectureRopeScaling3]
    normEpsilon: float
    partialRotary: float
    normPlacement: Literal["pre", "post", "sandwich"]
    embeddingScale: float
    mtpLayers: int


class RunFileModel(TypedDict, total=False):
    preset: str
    config: str
    weights: str
    architecture: RunFileModelArchitecture


class _RunFileTrainingMixtureItem(TypedDict):
    weights: dict[str, float]


class RunFileTrainingMixtureItem(_RunFileTrainingMixtureItem, total=False):
    fromStep: int


class _RunFileTrainingLora(TypedDict):
    rank: int


class RunFileTrainingLora(_RunFileTrainingLora, total=False):
    alpha: float
    targets: list[str]
    quantization: Literal["nf4"]


class RunFileTraining(TypedDict, total=False):
    objective: Literal["pretrain", "sft", "dpo"]
    documentMask: bool
    mixture: list[RunFileTrainingMixtureItem]
    sequenceLength: int
    microBatchSize: int
    globalBatchSize: int
    totalTokens: float
    steps: int
    precision: Literal["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]
    fp8Recipe: Literal["tensorwise", "rowwise", "blockwise"]
    activationCheckpointing: Literal["none", "selective", "full"]
    activationOffload: bool
    seed: int
    lora: RunFileTrainingLora


class RunFileTokenizer(TypedDict, total=False):
    chatTemplate: str
    trainOn: Literal["assistant", "all"]


class RunFileProgress(TypedDict, total=False):
    format: Literal[
        "auto",
        "transformers",
        "axolotl",
        "llama-factory",
        "torchtitan",
        "lightning",
        "megatron",
        "nemo",
        "deepspeed",
        "verl",
        "none",
    ]
    stepRegex: str
    lossRegex: str
    startupMinutes: float
    silenceMinutes: float


class _RunFileCode(TypedDict):
    source: str


class RunFileCode(_RunFileCode, total=False):
    entryPoint: str
    arguments: dict[str, Union[Any, list[Any]]]
    requirements: str
    containerEntrypoint: list[str]
    containerArguments: list[str]
    sha256: str


class RunFileImage(TypedDict, total=False):
    kind: Literal["environment", "dlc", "smp", "huggingface", "uri"]
    version: Any
    uri: str


class RunFileComputeInstanceCount2(TypedDict):
    min: int
    max: int


class RunFileComputeInstanceGroupsItem(TypedDict):
    name: str
    instanceType: str
    instanceCount: int


class _RunFileComputeAlternativesItem(TypedDict):
    instanceType: str


class RunFileComputeAlternativesItem(_RunFileComputeAlternativesItem, total=False):
    instanceCount: int
    trainingPlanArn: str


class _RunFileComputePlacementUltraServersItem(TypedDict):
    instanceCount: int


class RunFileComputePlacementUltraServersItem(_RunFileComputePlacementUltraServersItem, total=False):
    id: str


class RunFileComputePlacement(TypedDict, total=False):
    multipleJobs: bool
    ultraServers: list[RunFileComputePlacementUltraServersItem]


class RunFileCompute(TypedDict, total=False):
    instanceType: str
    instanceCount: Union[int, RunFileComputeInstanceCount2]
    spareInstances: int
    instanceGroups: list[RunFileComputeInstanceGroupsItem]
    alternatives: list[RunFileComputeAlternativesItem]
    capacity: Literal["on-demand", "spot", "training-plan"]
    trainingPlanArn: str
    volumeSizeGiB: int
    keepAliveSeconds: int
    infraCheck: bool
    placement: RunFileComputePlacement
    healthCheck: Literal["off", "quick", "full"]


class RunFileDistribution(TypedDict, total=False):
    library: Literal["ddp", "deepspeed", "fsdp", "custom", "megatron", "smp-v1", "smp-v2"]
    launcher: Literal["torchrun", "mpi", "ray", "script"]
    collectives: Literal["auto", "nccl", "smddp", "gloo"]
    contract: Literal["entrypoint", "toolkit", "container"]
    processesPerHost: int
    parameters: dict[str, Any]
    mpiOptions: str
    instanceGroups: list[str]


class _RunFileDataItemFsxLustre(TypedDict):
    fileSystemId: str
    directoryPath: str


class RunFileDataItemFsxLustre(_RunFileDataItemFsxLustre, total=False):
    access: Literal["ro", "rw"]


class _RunFileDataItemEfs(TypedDict):
    fileSystemId: str
    directoryPath: str


class RunFileDataItemEfs(_RunFileDataItemEfs, total=False):
    access: Literal["ro", "rw"]


class _RunFileDataItem(TypedDict):
    channel: str


class RunFileDataItem(_RunFileDataItem, total=False):
    s3: str
    source: str
    inputMode: Literal["File", "FastFile", "Pipe"]
    s3DataType: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"]
    s3DataDistribution: Literal["FullyReplicated", "ShardedByS3Key"]
    attributeNames: list[str]
    instanceGroups: list[str]
    shuffleSeed: int
    contentType: str
    fsxLustre: RunFileDataItemFsxLustre
    efs: RunFileDataItemEfs


class RunFileCheckpointsMemory3(TypedDict, total=False):
    everySteps: Union[Literal["auto"], int]
    copies: Union[Literal[1], Literal[2]]


class RunFileCheckpoints(TypedDict, total=False):
    mode: Literal["direct", "managed", "fsx", "none"]
    s3: str
    localPath: str
    channel: str
    intervalMinutes: Union[Literal["auto"], float]
    memory: Union[Literal["auto"], Literal["off"], RunFileCheckpointsMemory3]
    keep: int
    committedMarker: str
    startFrom: str


class RunFileOutput(TypedDict, total=False):
    s3: str
    compression: Literal["none", "gzip"]


class RunFileLimits(TypedDict, total=False):
    maxRuntimeSeconds: int
    maxWaitSeconds: int
    maxPendingSeconds: int
    maxCostUsd: float
    maxAttempts: int
    retryInternalErrors: int


class RunFileNetwork(TypedDict, total=False):
    isolation: bool
    interContainerEncryption: bool
    efa: Literal["required", "preferred", "off"]
    efaVariables: Literal["auto", "guide-2023"]


class RunFileObservabilityMetricsItem(TypedDict):
    name: str
    regex: str


class _RunFileObservabilityWandb(TypedDict):
    project: str


class RunFileObservabilityWandb(_RunFileObservabilityWandb, total=False):
    entity: str
    baseUrl: str


class _RunFileObservabilityMlflow(TypedDict):
    arn: str


class RunFileObservabilityMlflow(_RunFileObservabilityMlflow, total=False):
    experiment: str


class RunFileObservability(TypedDict, total=False):
    metrics: list[RunFileObservabilityMetricsItem]
    profiler: Union[Literal["off"], Literal["pytorch"], Literal["sagemaker"], Literal[False]]
    tensorBoard: bool
    remoteDebug: bool
    wandb: RunFileObservabilityWandb
    mlflow: RunFileObservabilityMlflow


class RunFileAcknowledgeItem(TypedDict):
    rule: str
    reason: str


class _RunFile(TypedDict):
    name: str
    code: RunFileCode
    compute: RunFileCompute


class RunFile(_RunFile, total=False):
    schema: Literal[1]
    kind: Literal["training", "processing"]
    environment: str
    after: list[str]
    priority: int
    preemptible: bool
    tags: dict[str, Any]
    model: RunFileModel
    training: RunFileTraining
    tokenizer: RunFileTokenizer
    progress: RunFileProgress
    image: RunFileImage
    distribution: RunFileDistribution
    data: list[RunFileDataItem]
    checkpoints: RunFileCheckpoints
    output: RunFileOutput
    limits: RunFileLimits
    network: RunFileNetwork
    observability: RunFileObservability
    hyperparameters: dict[str, Any]
    environmentVariables: dict[str, Any]
    secrets: dict[str, str]
    acknowledge: list[RunFileAcknowledgeItem]


class Issue(TypedDict):
    rule: str
    level: Literal["error", "warning", "info"]
    path: str
    message: str


class PlanMemoryGiB(TypedDict):
    total: float
    available: float


class PlanUsd(TypedDict):
    onDemand: Any


class _Plan(TypedDict):
    fits: Literal["fits", "tight", "oom"]
    memoryGiB: PlanMemoryGiB
    stepSeconds: float
    tokensPerSecond: float
    tokensPerSecondPerGpu: float
    modelTflopsPerGpu: float
    hardwareTflopsPerGpu: float
    mfu: float
    parameters: float
    steps: Union[int, None]
    tokens: Any
    hours: Any
    wallHours: Any
    usd: PlanUsd
    goodput: float
    gpus: int


class Plan(_Plan, total=False):
    activeParameters: float


class NeuronPlanLayoutsItemMemoryGiB(TypedDict):
    total: float


class NeuronPlanLayoutsItem(TypedDict):
    tensor: int
    shard: int
    memoryGiB: NeuronPlanLayoutsItemMemoryGiB


class NeuronPlan(TypedDict):
    fits: Literal["oom", "unknown"]
    instanceType: str
    cores: int
    coreGiB: float
    layouts: list[NeuronPlanLayoutsItem]
    parameters: float
    activeParameters: float
    tokensPerSecond: None
    usd: None
    assumptions: list[str]


class _StatusAttemptsItem(TypedDict):
    trainingJobName: str
    status: str
    secondaryStatus: str
    firstStep: Union[int, None]
    lastStep: Union[int, None]
    reason: str
    startedAt: Union[str, None]
    endedAt: Union[str, None]


class StatusAttemptsItem(_StatusAttemptsItem, total=False):
    number: int
    instanceCount: int
    gpuHours: float
    gpuUtilizationPercent: float


class StatusSpareInstances(TypedDict):
    left: Union[int, None]
    of: int


class StatusHandOver(TypedDict):
    why: Literal["preempted", "resized"]
    at: str
    isRead: bool


class _StatusConfiguration(TypedDict):
    spec: dict[str, Any]
    codeSha256: Any
    driverHash: str
    trainingImageUri: Any


class StatusConfiguration(_StatusConfiguration, total=False):
    configHash: str


class StatusTimelineItem(TypedDict):
    at: str
    what: str
    text: str
    evidence: dict[str, Any]


class _Status(TypedDict):
    runId: str
    name: str
    team: str
    state: Literal[
        "queued",
        "submitting",
        "pending",
        "running",
        "stopping",
        "resuming",
        "completed",
        "failed",
        "stopped",
    ]
    desiredState: Literal["run", "stop"]
    reason: str
    attempts: list[StatusAttemptsItem]
    committedStep: Union[int, None]
    step: Union[int, None]
    loss: Any
    goodput: Any
    spendUsd: Any
    queuePosition: Union[int, None]


class Status(_Status, total=False):
    createdAt: str
    attempt: Union[int, None]
    stepAt: Union[str, None]
    progressPercent: Any
    etaAt: Union[str, None]
    etaInterval80: Union[list[str], None]
    interruptions: int
    spareInstances: StatusSpareInstances
    handOver: StatusHandOver
    tags: dict[str, str]
    note: str
    after: list[str]
    preemptible: bool
    configuration: StatusConfiguration
    timeline: list[StatusTimelineItem]
    timelineOmitted: int


class Event(TypedDict):
    at: str
    what: str
    text: str
    evidence: dict[str, Any]
    runId: str


class LogLine(TypedDict):
    at: str
    attempt: int
    host: str
    message: str


class CheckpointOrigin(TypedDict):
    uri: str
    runId: Union[str, None]
    attempt: Union[int, None]
    step: int
    tokens: Any
    savedAt: Union[str, None]
    configHash: Union[str, None]
    codeDigest: Union[str, None]
    imageUri: Union[str, None]
    dataDigest: Union[str, None]
    seed: Union[int, None]
    nextSample: Union[int, None]
