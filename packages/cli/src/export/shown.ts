import type { Context } from '../context.ts';
import { safe, safeJson } from '../escape.ts';

/** The forms of an export that are texts for people. Every other one is JSON. */
const texts: ReadonlySet<string> = new Set(['markdown', 'html']);

/**
 * Input and output of an export: at a terminal, what could steer it is printed as an escape, which in JSON is the same
 * value. Files and pipes have the bytes themselves.
 */
export function shownIo(io: Context['io'], format: string): Context['io'] {
  if (!io.isTerminal) return io;
  const shown = texts.has(format) ? safe : safeJson;
  const out = async (text: string | Uint8Array) =>
    await io.out(typeof text === 'string' ? shown(text) : text);
  return Object.assign(Object.create(io) as Context['io'], { out });
}
