export * from './judge';
export * from './judge';
export * from './judge';
export * from './judge';
export * from './need';
