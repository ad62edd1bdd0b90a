import { lstatSync, readFileSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { ConfigError } from '../errors/kinds.ts';

/** A configuration file that was read, but not run. */
export interface ConfigFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/**
 * Reads a configuration file without running it. With `found`, refuses a symbolic link, which would extend
 * the trust in one directory to another.
 * @throws ConfigError when it is not a readable regular file
 */
export function readConfig(path: string, { found = false }: { found?: boolean } = {}): ConfigFile {
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': ${why}`, {
      data: { config: path },
      cause,
    });
  };
  try {
    if (found && lstatSync(path).isSymbolicLink())
      return refuse('it is a symbolic link; give its path with --config');
    const stat = statSync(path);
    if (stat.isDirectory()) return refuse('it is a directory');
    if (!stat.isFile()) return refuse('it is not a regular file');
    return { path, bytes: readFileSync(path) };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    return refuse(code === 'ENOENT' ? 'no such file' : message, error);
  }
}

/**
 * Runs a configuration file, JavaScript or TypeScript, and returns its default export.
 * @throws ConfigError with the line, if Node.js reports it
 */
export async function loadConfig(path: string): Promise<unknown> {
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    throw failure(path, error);
  }
  if ('default' in module) return module.default;
  throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': it has no default export`, {
    data: { config: path },
  });
}

function failure(path: string, error: unknown): ConfigError {
  const { code, message, stack } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  const missing =
    code === 'ERR_MODULE_NOT_FOUND' ? /^Cannot find package '([^']+)'/.exec(message)?.[1] : undefined;
  // The first position outside Node.js; a syntax error in plain JavaScript has none.
  const [, file, line] =
    /(file:\/\/\S+?):(\d+)/.exec(code === 'ERR_MODULE_NOT_FOUND' ? '' : (stack ?? '')) ?? [];
  const own = file === pathToFileURL(path).href;
  const place = line === undefined ? '' : `${own ? '' : `${file} `}line ${line}: `;
  return new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': ${place}${message}`, {
    data: {
      config: path,
      ...(line !== undefined && own && { line: Number(line) }),
      ...(missing !== undefined && { missing }),
      ...(place === '' && error instanceof SyntaxError && { unplaced: true }),
    },
    cause: error,
  });
}
