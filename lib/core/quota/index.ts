export * from './applied-limit';
export * from './judge';
export * from './need';
export * from './table';
export * from './usage';
