import { secretsIn } from '@tapedeck/tape/internal';
import { wordsOf } from '../permissions/command.ts';
import type { DeckTool } from '../tools/traits.ts';
import { countArgument, defineBuiltin } from './define.ts';
import { BuiltinError } from './errors.ts';
import { runInGroup } from './group-command.ts';
import type { BuiltinLimits } from './limits.ts';

interface RunInput {
  readonly command: string | readonly string[];
  readonly timeout_ms?: number;
}

/** How many times as long as usual a command may ask to take, and how long it takes to end one, in milliseconds. */
const [timesMax, endMs] = [10, 10_000];

/** Runs a command. */
export function runCommandTool({
  outputBytes,
  commandTimeoutMs,
  env,
}: Pick<BuiltinLimits, 'outputBytes' | 'commandTimeoutMs'> & {
  readonly env?: Readonly<Record<string, string | undefined>>;
}): DeckTool {
  const most = commandTimeoutMs * timesMax;
  return defineBuiltin<RunInput>({
    description: `Run a command in the workspace, without input, and wait for its end. What it has started by then is ended, too. The middle of an output of more than ${outputBytes} bytes is cut.`,
    properties: {
      command: {
        anyOf: [
          { type: 'array', items: { type: 'string' }, minItems: 1 },
          { type: 'string', minLength: 1 },
        ],
        description: 'A program and its arguments as a list: ["git","log","-3"]. Or a text for a shell',
      },
      timeout_ms: {
        ...countArgument(`How long it may take, in milliseconds (default ${commandTimeoutMs})`),
        maximum: most,
      },
    },
    required: ['command'],
    command: 'command',
    timeoutMs: most + endMs,
    execute: async ({ command, timeout_ms: timeoutMs = commandTimeoutMs }, { place, signal }) => {
      // What rules decide on is what runs.
      const words = typeof command === 'string' ? wordsOf(command) : command;
      const odd = words.find((word) => word.includes('\0'));
      if (odd !== undefined || words[0] === '')
        throw new BuiltinError(
          'TOOL_CANNOT_START',
          'cannot run a command with a null character, or without a name',
        );
      const end = await runInGroup({
        words,
        cwd: place.directory,
        env: env ?? withoutSecrets(process.env),
        timeoutMs,
        outputBytes,
        signal,
      });
      signal.throwIfAborted();
      return {
        ended: end.ended,
        ...(end.code !== null && { exit_code: end.code }),
        ...(end.signal !== null && { signal: end.signal }),
        ...(end.ended === 'timeout' && { timeout_ms: timeoutMs }),
        ...(end.hadLeft && { left_processes: 'ended' }),
        output: end.output,
      };
    },
  });
}

/** The environment without the variables that have secrets, such as keys of providers. */
function withoutSecrets(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  const secret = secretsIn(env).map(({ value }) => value);
  return Object.fromEntries(
    Object.entries(env).filter(([, value = '']) => !secret.some((one) => value.includes(one))),
  );
}
