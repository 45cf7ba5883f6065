export * from './elastic';
export * from './judge';
export * from './memory';
export * from './price';
export * from './quota-issues';
