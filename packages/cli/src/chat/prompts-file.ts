import type { Context } from '../context.ts';
import { openStateFile } from '../state-file.ts';

/** A prompt that was typed in a home. */
interface Line {
  readonly home: string;
  readonly prompt: string;
}

/** The prompts that a user typed in a home. */
export interface Prompts {
  /** The last one first, each once. */
  read(): readonly string[];
  add(prompt: string): void;
}

/** Characters of a prompt that is kept: a longer one was pasted. */
const lengthMax = 16_000;

/** Opens the prompts of a home, beside what else the user did. Secrets stay out of them. */
export function openPrompts({ io, home }: Pick<Context, 'io' | 'home'>): Prompts {
  const file = openStateFile('prompts.jsonl', io, { parse, bytesMax: 2 ** 20, linesKept: 2000 });
  const here = file.read().flatMap((line) => (line.home === home.dir ? line.prompt : []));
  let prompts = [...new Set(here)];
  return {
    read: () => prompts,
    add: (typed) => {
      const prompt = io.masked(typed);
      if (prompt === prompts[0]) return;
      prompts = [prompt, ...prompts.filter((one) => one !== prompt)];
      if (prompt.length <= lengthMax) file.append({ home: home.dir, prompt });
    },
  };
}

function parse({ home, prompt }: Readonly<Record<string, unknown>>): Line | undefined {
  return typeof home === 'string' && typeof prompt === 'string' ? { home, prompt } : undefined;
}
