export * from './elastic';
export * from './judge';
export * from './memory';
export * from './plan-document';
export * from './plan-sizes';
export * from './plan-spares';
export * from './price';
export * from './quota-issues';
