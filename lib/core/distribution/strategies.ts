/** All distribution strategies, one per line. Every run is handled by exactly one of them, so the order has no meaning. */
export { ddp } from './ddp';
export { deepspeed } from './deepspeed';
export { fsdp } from './fsdp';
export { huggingface } from './huggingface';
export { megatron } from './megatron';
export { ray } from './ray';
export { script } from './script';
export { smddp } from './smddp';
export { smpV1 } from './smp-v1';
export { smpV2 } from './smp-v2';
export { mpi, torchrun } from './torchrun';
