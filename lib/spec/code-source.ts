/** Value of `code.source` for a program that is in the image. */
export const CODE_IN_IMAGE = 'image';

/** Whether the code is one object in S3; a prefix is packed by the command line like a folder. */
export const isArchiveInS3 = (source: string): boolean => source.startsWith('s3://') && !source.endsWith('/');

/** Whether the code is a prefix in S3. */
export const isPrefixInS3 = (source: string): boolean => source.startsWith('s3://') && source.endsWith('/');
