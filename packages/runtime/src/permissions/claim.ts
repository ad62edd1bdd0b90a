import { sha256 } from '@tapedeck/tape/store';
import type { ToolTraits } from '../tools/traits.ts';
import { commandText, wordsOf } from './command.ts';
import { type PathPlace, placesOf, UnknownPath } from './real-path.ts';
import type { ClaimKind } from './rule.ts';

/** One thing that a call would do. */
export interface Claim {
  readonly kind: ClaimKind;
  /** The name of the tool or of the session, the real path, or the command as one text. */
  readonly what: string;
  /** The words of a command. */
  readonly words?: readonly string[];
  /** The parent of the session that it sends to. */
  readonly parent?: string | undefined;
  /** Why it cannot be known what it would do. */
  readonly fault?: string;
}

/** A session that a call sends to, and its parent. */
export interface Target {
  readonly session: string;
  readonly parent?: string | undefined;
}

/** A call of a tool, with the arguments that the tool would get. */
export interface ClaimingCall {
  readonly tool: string;
  readonly input: unknown;
}

/** The texts of some arguments, and whether all of these arguments are texts or lists of texts. */
interface Texts {
  readonly texts: readonly string[];
  readonly areTexts: boolean;
}

function textsOf(input: unknown, names: readonly string[]): Texts {
  const values = names.flatMap((name) => {
    const value: unknown = (input as Readonly<Record<string, unknown>> | null | undefined)?.[name];
    return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  });
  const texts = values.filter((value) => typeof value === 'string');
  return { texts, areTexts: texts.length === values.length };
}

/** What a call would send to, as it names it. Pure. */
export function targetsIn({ target }: ToolTraits, input: unknown): readonly string[] {
  return target === undefined ? [] : textsOf(input, [target]).texts;
}

/**
 * What a call claims to do, in the order in which a refusal names them: the tool, whom it sends to, what it reads, writes and
 * executes. A tool that does not say what it touches may touch anything. So may one whose arguments are no texts where it
 * says they are.
 */
export function claimsOf(
  { tool, input }: ClaimingCall,
  traits: ToolTraits,
  { place, target }: { place: PathPlace; target: (text: string) => Target },
): readonly Claim[] {
  const { paths, command } = traits;
  const read = textsOf(input, paths?.read ?? []);
  const write = textsOf(input, paths?.write ?? []);
  const run = textsOf(input, [command ?? []].flat());
  const sends = textsOf(input, traits.target === undefined ? [] : [traits.target]);
  const isSilent = paths === undefined && command === undefined && traits.target === undefined;
  const isOpaque = isSilent || ![read, write, run, sends].every(({ areTexts }) => areTexts);
  return [
    { kind: 'tool', what: tool },
    ...sends.texts.map((text): Claim => {
      const { session, parent } = target(text);
      return { kind: 'send', what: session, parent };
    }),
    ...read.texts.flatMap((text) => pathClaims('read', text, place)),
    ...write.texts.flatMap((text) => pathClaims('write', text, place)),
    ...commandClaims(run.texts, command, input),
    ...(isOpaque ? [{ kind: 'opaque', what: tool } as const] : []),
  ];
}

function pathClaims(kind: 'read' | 'write', text: string, place: PathPlace): readonly Claim[] {
  try {
    return placesOf(text, place).map((what) => ({ kind, what }));
  } catch (error) {
    if (!(error instanceof UnknownPath)) throw error;
    return [{ kind, what: text, fault: error.message }];
  }
}

/** The longest argument of a program, in bytes: what Linux takes. */
const commandMax = 131_072;

/** One argument with a text is a line of a command; a list, or several arguments, are its words. */
function commandClaims(
  texts: readonly string[],
  command: ToolTraits['command'],
  input: unknown,
): readonly Claim[] {
  const [text] = texts;
  if (text === undefined || command === undefined) return [];
  const tooLong = texts.find((one) => Buffer.byteLength(one) > commandMax);
  if (tooLong !== undefined)
    return [{ kind: 'exec', what: tooLong, fault: `it is longer than ${commandMax} bytes` }];
  const isLine =
    texts.length === 1 &&
    [command].flat().length === 1 &&
    !Array.isArray((input as Readonly<Record<string, unknown>>)[[command].flat()[0] ?? '']);
  const words = isLine ? wordsOf(text) : texts;
  return [{ kind: 'exec', what: commandText(words), words }];
}

/** The most characters of a claim that records and messages show. */
const shownMax = 500;

/** A claim as a text, in the form of a rule. Long ones are cut, and told apart by a hash. */
export function claimText({ kind, what }: Claim): string {
  const shown =
    what.length <= shownMax
      ? what
      : `${what.slice(0, shownMax).toWellFormed()}… sha256:${sha256(what).slice(0, 16)}`;
  return kind === 'tool' ? shown : `${kind}(${shown})`;
}
