import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ImportError } from '../lines/errors.ts';
import type { Identity, TranscriptTool } from '../plan/format.ts';
import { formatError } from '../plan/format-error.ts';
import type { Problem } from './walk.ts';

/** What formats answer during a search. What one throws is a problem of the path that it was given, and ends no search. */
export class Answers {
  readonly #failed = new Map<string, ImportError>();

  get problems(): readonly Problem[] {
    return [...this.#failed].map(([path, error]) => ({ path, why: String(error.data.why), error }));
  }

  /** What a format says of a path; undefined where it fails. */
  of<Answer>(tool: TranscriptTool, path: string, act: () => Answer): Answer | undefined {
    try {
      return act();
    } catch (cause) {
      if (!this.#failed.has(path)) this.#failed.set(path, formatError(cause, { tool, file: path }));
      return undefined;
    }
  }

  identity(tool: TranscriptTool, records: readonly JsonObject[], path: string): Identity | undefined {
    return this.of(tool, path, () => checked(tool.identify(records, path)));
  }

  hasFailed(path: string): boolean {
    return this.#failed.has(path);
  }

  /** Takes back what failed at a path. */
  clear(path: string): void {
    this.#failed.delete(path);
  }
}

/** @throws TypeError for what is no identity: a format may be a program without types */
function checked(given: Identity | undefined): Identity | undefined {
  if (given === undefined) return undefined;
  if (given instanceof Promise) {
    // It may end in an error that otherwise ends the process.
    given.catch(() => undefined);
    throw new TypeError('what `identify` returns is a promise');
  }
  if (!isObject(given)) throw new TypeError('what `identify` returns is no object');
  for (const field of ['session', 'main'] as const)
    if (typeof given[field] !== 'string' || given[field] === '')
      throw new TypeError(`what \`identify\` returns: ${field} is no text`);
  if (!['main', 'subagent', 'part'].includes(given.role))
    throw new TypeError("what `identify` returns: role is not 'main', 'subagent' or 'part'");
  return given;
}
