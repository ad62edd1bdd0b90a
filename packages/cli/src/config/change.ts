import { createHash } from 'node:crypto';
import { lstatSync, realpathSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Redact } from '@tapedeck/tape';
import { maskFor, redactorFor, secretsIn } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { ConfigError, UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { isConfigForeign, rememberConfig } from '../origin.ts';
import { aliasKeys } from './aliases.ts';
import { homeConfigFile } from './find.ts';
import { keyText, type Path } from './keys.ts';
import { redactIn } from './redact.ts';
import { remoteKeys } from './remotes.ts';
import { replaceFile } from './replace-file.ts';
import { withoutPaths } from './without-paths.ts';

/** A change of `config.yaml`. */
export interface ConfigChange {
  readonly file: string;
  /** The value before; undefined without one. */
  readonly was: unknown;
  /** Whether the value was the same before, so that nothing was written. */
  readonly repeated: boolean;
}

/**
 * Gives a field of `config.yaml` a value, or takes it away where the value is undefined. The new text is checked as every
 * reader checks it, and replaces the file in one step. A file that is this user's stays so. One that came with the home
 * becomes this user's when nothing is left in it that would run, read or send to what the user did not name.
 * @throws UsageError for a value that the field cannot have; ConfigError for a file that cannot be used or changed
 */
export async function changeHomeConfig(
  path: Path,
  value: unknown,
  { home, io }: Pick<Context, 'home' | 'io'>,
): Promise<ConfigChange> {
  const key = keyText(path);
  const act = value === undefined ? `unset ${key}` : `set ${key}`;
  const file = realFile(homeConfigFile(home), act, { isForeign: isConfigForeign(home, io) });
  const { configText } = await import('./home.ts');
  let was: unknown;
  let repeated = false;
  await replaceFile(file, act, async () => {
    const isForeign = isConfigForeign(home, io);
    const before = configText(file) ?? '';
    const after = await edited(before, { path, value, act, file });
    was = after.was;
    // A value that came with the home becomes this user's when this user sets it.
    repeated = isDeepStrictEqual(was, value) && !(isForeign && value !== undefined);
    if (repeated) return undefined;
    const left = await checked(after.text, { before, path, value, act, file });
    const brought = (left ?? []).filter((name) => name !== key && !name.startsWith(`${key}.`));
    if (isForeign && brought.length > 0 && value !== undefined)
      throw new ConfigError(
        'CLI_FOREIGN_HOME',
        `cannot ${act}: '${file}' came with the home, with ${brought.join(', ')}`,
        {
          data: { home: home.dir, config: file, brought },
        },
      );
    assertNoSecret(value, act, io.env);
    if (path[0] !== 'redact') assertNoForm(value, act, { file, redact: await redactIn({ io, home }) });
    const digest = createHash('sha256').update(after.text).digest('hex');
    const isOwn = !isForeign || (left !== undefined && brought.length === 0);
    rememberConfig(home, { digest, isOwn }, io);
    return after.text;
  });
  return { file, was, repeated };
}

/** The file behind a link of this user, so that it is replaced, and not the link. */
function realFile(config: string, act: string, { isForeign }: { readonly isForeign: boolean }): string {
  if (lstatSync(config, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return config;
  const refuse = (why: string) =>
    new ConfigError('CLI_BAD_CONFIG', `cannot ${act}: '${config}' is a link that ${why}`, {
      data: { config },
    });
  if (isForeign) throw refuse('came with the home');
  try {
    return realpathSync(config);
  } catch {
    throw refuse('leads to no file');
  }
}

interface Edit {
  readonly path: Path;
  readonly value: unknown;
  readonly act: string;
  readonly file: string;
}

async function edited(
  before: string,
  { path, value, act, file }: Edit,
): Promise<{ readonly text: string; readonly was: unknown }> {
  const { CannotEdit, edit } = await import('./edit.ts');
  try {
    return edit(before, path, value);
  } catch (error) {
    if (!(error instanceof CannotEdit)) throw error;
    throw new ConfigError('CLI_BAD_CONFIG', `cannot ${act} in '${file}': ${error.message}`, {
      data: { config: file },
    });
  }
}

/**
 * Checks the new text, and returns its fields that name files or remotes, or stand for command lines. From a text that has
 * other faults, a value can still be taken away; which fields it has is unknown.
 */
async function checked(
  text: string,
  { before, path, value, act, file }: Edit & { readonly before: string },
): Promise<readonly string[] | undefined> {
  const { parseHomeConfig } = await import('./home.ts');
  try {
    const { config, data } = await parseHomeConfig(text, file);
    return [...withoutPaths(config).ignored, ...aliasKeys(data), ...remoteKeys(data)];
  } catch (error) {
    if (value === undefined) return undefined;
    const { field = '', why = '' } =
      error instanceof ConfigError ? (error.data as { field?: string; why?: string }) : {};
    const key = keyText(path);
    const isOwn = field === key || field.startsWith(`${key}.`) || key.startsWith(`${field}.`);
    // A fault that the file had before is not that of the value.
    if (!isOwn) await parseHomeConfig(before, file);
    if (field === '') throw error;
    throw new UsageError(
      `cannot ${act}: ${why.startsWith(`${key} `) ? `it ${why.slice(key.length + 1)}` : why}`,
      {
        data: { key, field },
      },
    );
  }
}

/** The environment has secrets; a configuration has none. */
function assertNoSecret(value: unknown, act: string, env: Context['io']['env']): void {
  const mask = maskFor(secretsIn(env));
  if (mask === undefined || isDeepStrictEqual(mask.value(value), value)) return;
  throw new UsageError(`cannot ${act}: the value has a secret of the environment`, {
    hint: 'providers read their keys from the environment: see tape help models',
  });
}

/** Refuses what has the form of a secret, unless the home looks for none. */
function assertNoForm(
  value: unknown,
  act: string,
  { file, redact }: { readonly file: string; readonly redact: Redact | undefined },
): void {
  if (value === undefined) return;
  const texts = [typeof value === 'string' ? value : '', JSON.stringify(value)];
  const [found] = texts.flatMap((text) => redactorFor(redact)?.find(text) ?? []);
  if (found === undefined) return;
  throw new UsageError(`cannot ${act}: the value has the form of a secret (${found.name})`, {
    data: { kind: found.name },
    hint: `secrets belong in variables of the environment: see tape help models; if it is none, write it into ${shellWord(file)} yourself`,
  });
}
