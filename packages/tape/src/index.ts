export * from './entry.ts';
export * from './errors.ts';
export * from './json.ts';
export * from './lineage-line.ts';
export * from './name.ts';
