import type { Context } from './context.ts';
import { safe } from './escape.ts';

/** Whether someone sees a question on stderr and answers on stdin: no program reads the output. */
export function canAsk({ io, options }: Pick<Context, 'io' | 'options'>): boolean {
  const isForProgram = options.json === true || options.jsonl === true || options.quiet === true;
  return io.stdinIsTerminal && io.statusIsTerminal && !isForProgram;
}

/** Asks once on stderr, where someone sees it. The end of the input is a no. */
export async function agrees(question: string, context: Pick<Context, 'io' | 'options'>): Promise<boolean> {
  if (!canAsk(context)) return false;
  const { io } = context;
  io.err(safe(`${question} [y/N] `));
  for await (const bytes of io.stdin) return /^y(?:es)?\s*$/i.test(Buffer.from(bytes).toString('utf8'));
  io.err('\n');
  return false;
}
