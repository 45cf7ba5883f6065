export { type ImportContext, type Imported, importRequest } from './import-request';
export { TRAINER_CHANNEL, type TrainerFiles } from './model-trainer';
export { importText } from './read-document';
export { findRequest } from './read-request';
