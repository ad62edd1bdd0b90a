import { firstSchema } from './schema.ts';

/**
 * The SQL of the migrations, in order of their names. A released one never changes: homes have made it. One that adds what
 * older builds need not know leaves the row `least` of `home` as it is; any other sets it to its own name, and older builds
 * open the home no more.
 */
export const migrations: Readonly<Record<string, string>> = {
  '0001': firstSchema,
};
