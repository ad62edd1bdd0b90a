import { closeSync, openSync, writeSync } from 'node:fs';
import { seeded } from './random.ts';

/** The shape of a transcript. */
export interface Shape {
  /** About how many bytes it has. */
  readonly bytes: number;
  /** The output of every call, in characters, in place of those that tools usually have. */
  readonly output?: number;
  /** The prompt of every turn, in characters, in place of those that users usually write. */
  readonly prompt?: number;
}

/** The session of all transcripts, unless they have another one. */
const session = '5f3c9a52-0000-4000-8000-000000000000';

/**
 * Lines of a transcript of Claude Code, with the records, fields and lengths of real ones: prompts, answers of several
 * records, calls with their outputs (which the tool writes twice), progress of hooks and commands. The average is 3.2 KB. The
 * same arguments give the same lines, and a longer transcript begins as a shorter one.
 */
export function* transcriptLines(
  { bytes, output, prompt }: Shape,
  { id = session }: { readonly id?: string } = {},
): Generator<string> {
  const random = seeded(7);
  pool ??= poolOf(seeded(8));
  const words = pool;
  const cut = (length: number): string => {
    const at = Math.floor(random() * words.length);
    return at + length <= words.length
      ? words.slice(at, at + length)
      : words.repeat(1 + Math.ceil(length / words.length)).slice(at, at + length);
  };
  let [count, written] = [0, 0];
  let parent: string | null = null;
  const line = (type: string, fields: object, isLinked = true): string => {
    count += 1;
    const uuid = `${count.toString(16).padStart(8, '0')}-${id.slice(9)}`;
    const text = JSON.stringify({
      parentUuid: parent,
      isSidechain: false,
      userType: 'external',
      cwd: '/home/user/project',
      sessionId: id,
      version: '2.1.17',
      gitBranch: 'main',
      type,
      ...fields,
      uuid,
      timestamp: new Date(1_700_000_000_000 + count * 1000).toISOString(),
    });
    if (isLinked) parent = uuid;
    written += text.length + 1;
    return text;
  };
  for (let turn = 1; written < bytes; turn += 1) {
    yield line('user', { message: { role: 'user', content: cut(prompt ?? 60 + random() * 400) } });
    yield line('progress', {
      data: { type: 'hook_progress', hookEvent: 'UserPromptSubmit', command: cut(120) },
      toolUseID: `hook-${turn}`,
    });
    const steps = 1 + Math.floor(random() * 12);
    for (let step = 0; step < steps && written < bytes; step += 1) {
      const isLast = step === steps - 1;
      const message = (content: object, stop: string | null) => ({
        message: {
          model: 'claude-opus-4-5-20251101',
          id: `msg_${turn}_${step}`,
          type: 'message',
          role: 'assistant',
          content: [content],
          stop_reason: stop,
          stop_sequence: null,
          usage: {
            input_tokens: 10,
            cache_creation_input_tokens: 900 + step,
            cache_read_input_tokens: 20_000 + count,
            cache_creation: { ephemeral_5m_input_tokens: 900 + step, ephemeral_1h_input_tokens: 0 },
            output_tokens: Math.floor(random() * 400),
            service_tier: 'standard',
          },
        },
        requestId: `req_${turn}_${step}`,
      });
      if (random() < 0.6)
        yield line(
          'assistant',
          message(
            {
              type: 'thinking',
              thinking: cut(100 + random() * 900),
              signature: cut(400).replaceAll(/[^a-z]/g, 'A'),
            },
            null,
          ),
        );
      if (isLast || random() < 0.4)
        yield line(
          'assistant',
          message({ type: 'text', text: cut(60 + random() * 900) }, isLast ? 'end_turn' : null),
        );
      if (isLast) break;
      const call = `toolu_${turn}_${step}`;
      yield line(
        'assistant',
        message(
          {
            type: 'tool_use',
            id: call,
            name: 'Bash',
            input: { command: cut(40 + random() * 500), description: cut(40) },
          },
          'tool_use',
        ),
      );
      if (random() < 0.5)
        yield line(
          'progress',
          {
            data: { type: 'bash_progress', output: cut(80), fullOutput: cut(200), elapsedTimeSeconds: step },
            toolUseID: `bash-${step}`,
            parentToolUseID: call,
          },
          false,
        );
      const stdout = cut(output ?? outputChars(random()));
      yield line('user', {
        message: {
          role: 'user',
          content: [{ tool_use_id: call, type: 'tool_result', content: stdout, is_error: false }],
        },
        toolUseResult: { stdout, stderr: '', interrupted: false, isImage: false },
      });
    }
    if (turn % 5 === 0)
      yield line('system', { subtype: 'turn_duration', durationMs: 1000 * turn, isMeta: false });
  }
}

/** Writes a transcript, and returns how many lines and bytes it has. */
export function writeTranscript(
  file: string,
  shape: Shape,
  options?: { readonly id?: string },
): { readonly lines: number; readonly bytes: number } {
  const fd = openSync(file, 'w', 0o600);
  let [lines, bytes] = [0, 0];
  try {
    for (const line of transcriptLines(shape, options)) {
      bytes += writeSync(fd, `${line}\n`);
      lines += 1;
    }
  } finally {
    closeSync(fd);
  }
  return { lines, bytes };
}

/** How long the output of a tool is: most have some lines, some a file, few a long one. */
function outputChars(share: number): number {
  if (share < 0.78) return 100 + (share / 0.78) * 2_200;
  return share < 0.98 ? 5_000 + ((share - 0.78) / 0.2) * 11_000 : 30_000 + ((share - 0.98) / 0.02) * 30_000;
}

/** The text of which all others are pieces. */
let pool: string | undefined;

/** Text as tools print it and models write it: lines of words, some quotes, few characters of several bytes. */
function poolOf(random: () => number): string {
  const words = [
    'const',
    'the',
    'session',
    'return',
    'import',
    'of',
    'file.ts',
    'is',
    'a',
    'to',
    'function',
    '=>',
    '(',
    '};',
  ];
  let text = '';
  for (let line = 1; text.length < 400_000; line += 1) {
    const length = 3 + Math.floor(random() * 12);
    const said = Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(' ');
    text += `${said} ${line % 4 === 0 ? '"error"' : ''}${line % 200 === 0 ? ' → naïve' : ''}\n`;
  }
  return text;
}
