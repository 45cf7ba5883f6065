import { CODE_IN_IMAGE, isArchiveInS3, isPrefixInS3, type Switch } from '../../config/code-source';
import { entriesOf, type Rule, rule, valueAt, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { CODE_FOLDER_RULES, entryFile, toolkitRequirements } from './code-folder';
import { REQUIREMENTS_RULES } from './requirements';
import { SCRIPT_RULES } from './script-arguments';

const inImage = ({ code }: RunSpec): boolean => code.source === CODE_IN_IMAGE;

/** What the toolkit makes of an argument that the driver passes in another form; undefined where both pass the same. */
function toolkitForm(key: string, value: unknown): string | undefined {
  if (value === false) return undefined;
  if (value === true) return `--${key} True`;
  if (typeof value === 'object' && value !== null) return asOneText(key);
  if (key.length === 1) return `-${key}`;
  return key.startsWith('-') ? `--${key}` : undefined;
}

const asOneText = (key: string): string => `--${key} and the whole value as one text in the notation of Python`;

/** Hyperparameters are for the toolkit alone: only what no parser of arguments reads is worth a word. */
const hyperparameterForm = (key: string, value: unknown): string | undefined =>
  Array.isArray(value) ? asOneText(key) : undefined;

/** Options of transformers 5.23, TRL 1.16 and earlier versions that are true unless they are told otherwise. */
const TRUE_BY_DEFAULT: ReadonlySet<string> = new Set([
  ...['average_tokens_across_devices', 'dataloader_in_order', 'dataloader_pin_memory', 'disable_dropout'],
  ...['eval_do_concat_batches', 'gradient_checkpointing', 'log_on_each_node', 'logging_nan_inf_filter'],
  ...['remove_unused_columns', 'save_safetensors', 'skip_memory_metrics'],
]);

/** What to write for an option that is to be false, by what makes it false. */
const WAYS_TO_FALSE: Readonly<Record<Switch['off'], (key: string) => { must: string; fix: string }>> = {
  never: (key) => ({
    must: 'must be an option that can be false: the script declares it with type=bool, or with default=True alone, so that every text is true',
    fix: `declare it with action=argparse.BooleanOptionalAction, and write no-${key}: true`,
  }),
  empty: () => ({
    must: 'must be empty to be false: the script passes it to bool(), for which every other text is true',
    fix: 'write "", or compare the text in the script',
  }),
  text: (key) => ({
    must: 'must be the text "False" for an option that is true by default, because false is left out',
    fix: `write ${key}: "False"`,
  }),
  negation: (key) => ({
    must: `must be no-${key}: true for an option that is true by default, because false is left out`,
    fix: `write no-${key}: true`,
  }),
};

/** Arguments that tell a program what to load, and names of a hub. */
const LOADED = /(^|[-_])(model|tokenizer|dataset|processor|adapter)[-_](name|id|name[-_]or[-_]path)$|^base[-_]model$/i;
const HUB_NAME = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?$/;
/**
 * Models whose publishers give their files only to those who have accepted a licence. https://huggingface.co/meta-llama, 2026-11-30;
 * ml-explore/mlx-examples#759, data-prep-kit/data-prep-kit#1504 and vladmandic/sdnext#4043. Gemma 4 has no gate.
 */
const GATED =
  /^(meta-llama\/|google\/(gemma-(2b|7b|2-|3-|3n-)|(code|med|pali|recurrent|shield|t5)gemma|embeddinggemma-300m)|mistralai\/(mistral-7b-(instruct-)?v0\.[12]|mixtral-8x7b-)|bigcode\/starcoder(base|plus)?$|black-forest-labs\/flux\.1-dev)/i;
const HUB_TOKEN = /^(HF|HUGGING_?FACE)\w*TOKEN$/;
/** With one of these variables, a program asks a mirror, or no hub at all. */
const HUB_VARIABLES = ['HF_ENDPOINT', 'HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE'];

/** Rules for a run's code, which may be a program in the image, where the container has no Slipway component. */
export const CODE_RULES: readonly Rule[] = [
  ...CODE_FOLDER_RULES,
  ...REQUIREMENTS_RULES,
  ...SCRIPT_RULES,
  rule('code/builtin', 'error', (run) => {
    const { builtin: name, requirements } = run.code;
    if (!name) return [];
    const wrong = (run.kind === 'training') !== (name === 'builtin');
    return [
      ...when(wrong, 'code.source', {
        must:
          run.kind === 'training'
            ? 'must be builtin or custom code for a training run'
            : 'must be builtin-tokenize, builtin-fetch or custom code for a processing run',
        fix: run.kind === 'training' ? 'use builtin, or kind: processing' : 'use builtin-tokenize',
      }),
      ...when(run.written.code.entryPoint !== undefined, 'code.entryPoint', {
        level: 'warning',
        must: 'must be omitted: the built-in code has its own',
      }),
      ...when(requirements !== undefined, 'code.requirements', {
        must: 'must be omitted: the built-in code needs none',
      }),
    ];
  }),
  rule('code/archive', 'error, local', (run) => {
    const { source, sha256 } = run.code;
    const inS3 = source.startsWith('s3://');
    const isOtherFile =
      isArchiveInS3(source) &&
      !(run.distribution.contract === 'toolkit' ? /\.(tar\.gz|tgz)$/ : /\.tar\.gz$/).test(source);
    return [
      // The driver searches for *.tar.gz in its channel.
      ...when(isPrefixInS3(source) && sha256 !== undefined, 'code.sha256', {
        must: 'must be omitted for a prefix, which is archived at launch',
        fix: 'remove it, or use an archive',
      }),
      ...when(isOtherFile, 'code.source', {
        must: 'must be a .tar.gz, or a prefix that ends with /, when it is in S3',
        fix: 'pack the folder as .tar.gz, or use the prefix with a trailing /',
      }),
      ...when(!inS3 && sha256 !== undefined, 'code.sha256', {
        must: 'must be omitted: it only applies to an archive in S3',
      }),
    ];
  }),
  rule('code/requirements', 'error', (run, context) => {
    const { descriptor } = context;
    const got = run.code.requirements ?? toolkitRequirements(run, context);
    if (got === undefined) return [];
    const path = 'code.requirements';
    const locked = descriptor?.network?.mode === 'vpc-locked' && (descriptor.network.packages ?? 'none') === 'none';
    return [
      ...when(run.network.isolation, path, {
        must: 'must not be given with network.isolation: nothing can be installed',
        got,
        fix: 'include the packages in the image',
      }),
      ...when(locked && !run.network.isolation, path, {
        must: 'must have a package index, which the environment does not provide (vpc-locked with packages none)',
        got,
        fix: 'include the packages in the image, or ask the platform team to set network.packages to wheels or codeartifact',
      }),
      ...when(run.distribution.contract === 'toolkit' && got !== 'requirements.txt', path, {
        must: 'must be requirements.txt under the toolkit contract, which installs no other file',
        got,
        fix: 'rename it, or use contract entrypoint',
      }),
    ];
  }),
  rule('code/argument-collision', 'error', (run) => {
    if (run.distribution.contract !== 'toolkit') return [];
    return Object.keys(run.code.arguments)
      .filter((key) => key in run.hyperparameters)
      .map((key) => ({
        path: `code.arguments.${key}`,
        must: 'must not also be a hyperparameter: the toolkit contract passes both to the script in the same way',
        fix: 'keep one of the two',
      }));
  }),
  rule('code/argument-form', 'warning, may acknowledge', (run) => {
    if (run.distribution.contract !== 'toolkit') return [];
    return entriesOf(run, ['code.arguments', 'hyperparameters']).flatMap(({ section, path, key, value }) => {
      const form = section === 'code.arguments' ? toolkitForm(key, value) : hyperparameterForm(key, value);
      return when(form !== undefined, path, {
        must: `must have a form that the toolkit passes as it is; it passes ${form}`,
        fix: 'write the text that the script expects, use contract entrypoint and code.arguments, or acknowledge it',
      });
    });
  }),
  rule('code/false-arguments', 'warning, may acknowledge', (run, { codeFolder }) => {
    const { code, distribution } = run;
    const switches = entryFile(run, codeFolder)?.switches ?? {};
    const passed = distribution.contract === 'toolkit' ? (['hyperparameters'] as const) : [];
    const values = entriesOf(run, ['code.arguments', ...passed, 'environmentVariables']);
    return values.flatMap(({ section, key: written, value, path }) => {
      const key = section === 'environmentVariables' ? `$${written}` : written;
      const name = key.replaceAll('-', '_');
      const known = TRUE_BY_DEFAULT.has(name) && !code.builtin ? ({ off: 'text', isOn: true } as const) : undefined;
      const { off, isOn } = switches[key] ?? switches[name] ?? known ?? { off: 'text', isOn: false };
      const isLeftOut = section === 'code.arguments' && value === false;
      const isTrue = isLeftOut ? isOn : /^(never|empty)$/.test(off) && /^(false|no|off|n|f|0)$/i.test(String(value));
      return when(isTrue, path, WAYS_TO_FALSE[off](key));
    });
  }),
  rule('code/hub-access', 'warning, may acknowledge', (run, { descriptor, codeFolder }) => {
    const { code, network, environmentVariables } = run;
    const isClosed = network.isolation || descriptor?.network?.mode === 'vpc-locked';
    const variables = { ...environmentVariables, ...run.secrets };
    if (code.builtin || HUB_VARIABLES.some((name) => name in variables)) return [];
    const hasToken =
      Object.keys(variables).some((name) => HUB_TOKEN.test(name)) ||
      Object.keys(code.arguments).some((key) => /token$/i.test(key));
    const isInCode = (name: string) => codeFolder?.files.some((file) => file.name.startsWith(`${name}/`)) ?? false;
    const given = Object.entries(code.arguments).filter(([key]) => LOADED.test(key));
    const named = given.length > 0 ? [] : (entryFile(run, codeFolder)?.loads ?? []).filter((name) => GATED.test(name));
    const models = [
      ...given.map(([key, value]) => ({ path: `code.arguments.${key}`, name: String(value) })),
      ...named.map((name) => ({ path: 'code.entryPoint', name })),
    ];
    return models.flatMap(({ path, name }) => {
      const isName = HUB_NAME.test(name) && !isInCode(name);
      const needsToken = !isClosed && !hasToken && GATED.test(name);
      return when(isName && (isClosed || needsToken), path, {
        must: isClosed
          ? 'must be a path in the container: the network of the run reaches no hub'
          : 'must be a model that the hub gives to everyone, or the run must have a token: this one has a gate',
        got: name,
        fix: `copy it with slipway fetch, name its folder under data, and pass /opt/ml/input/data/<channel>;${isClosed ? '' : ' or name a token under secrets as HF_TOKEN;'} or acknowledge it if the image has it`,
      });
    });
  }),
  rule('code/shell-characters', 'warning', (run) => {
    if (run.distribution.contract !== 'toolkit') return [];
    return entriesOf(run, ['code.arguments', 'hyperparameters'])
      .filter(({ value }) => typeof value === 'string' && /[;$`|&<>(){}]|\s/.test(value))
      .map(({ path }) => ({
        path,
        must: 'must not contain spaces or shell characters for toolkits before 5.1.4',
        fix: 'use contract entrypoint, or an image with a newer toolkit',
      }));
  }),
  /** Findings for options of the image's own program when another program is started. */
  rule('code/container-options', 'error, local', (run) => {
    if (inImage(run)) return [];
    const given = (['containerEntrypoint', 'containerArguments'] as const).filter((key) => run.code[key] !== undefined);
    return [
      ...given.map((key) => ({
        path: `code.${key}`,
        must: 'must be used with code.source image: the driver or the toolkit starts other code',
        fix: 'set source: image, or use code.entryPoint and code.arguments',
      })),
      ...when(run.distribution.contract === 'container', 'distribution.contract', {
        must: 'must be entrypoint or toolkit unless code.source is image',
        fix: 'remove it, or set code.source: image',
      }),
    ];
  }),
  rule('code/container', 'error', (run) => {
    if (!inImage(run)) return [];
    const { contract, library } = run.distribution;
    return [
      ...when(run.kind === 'processing', 'code.source', {
        must: 'must be builtin-tokenize, builtin-fetch or custom code for a processing run',
        fix: 'use a folder with the program, or kind: training',
      }),
      ...when(contract !== 'container', 'distribution.contract', { must: 'must be container with code.source image' }),
      ...when(library !== 'custom', 'distribution.library', {
        must: 'must be custom with code.source image: it would have no effect on the program',
      }),
    ];
  }),
  /** Findings for options that only the driver or the toolkit reads, when neither is used. */
  rule('code/container-without-driver', 'error', (run) => {
    if (!inImage(run)) return [];
    const paths = [
      ...['entryPoint', 'arguments', 'requirements', 'sha256'].map((key) => `code.${key}`),
      ...['launcher', 'processesPerHost', 'parameters', 'mpiOptions', 'instanceGroups'].map(
        (key) => `distribution.${key}`,
      ),
      'model.weights',
    ];
    return paths.flatMap((path) => {
      const got = valueAt(run.written, path);
      return when(got !== undefined, path, {
        must: 'must be omitted with code.source image: the image starts its own program',
        got,
        fix: path === 'model.weights' ? 'add the weights as a channel of data' : 'use code.containerArguments',
      });
    });
  }),
];
