import { readFileSync, statSync } from 'node:fs';
import type { Redact } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { homeConfigFile } from './find.ts';

/**
 * What `config.yaml` of a home says about secrets, for the verbs that load no configuration. Undefined without a word of
 * it, which is known without reading the file as YAML.
 */
export async function redactIn({ io, home }: Pick<Context, 'io' | 'home'>): Promise<Redact | undefined> {
  if (!namesIt(homeConfigFile(home))) return undefined;
  const { homeConfig } = await import('./deck.ts');
  return (await homeConfig({ io, home })).config.redact;
}

/** Whether a file has the word. A pipe would be read without an end; what cannot be read is refused where it is parsed. */
function namesIt(path: string): boolean {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return false;
    return !stat.isFile() || readFileSync(path, 'utf8').includes('redact');
  } catch {
    return true;
  }
}
