import { z } from 'zod';
import { compactionPresets } from './policy.ts';

/** Node.js fires timers that are longer than this at once. */
const delayMaxMs = 2 ** 31 - 1;

const whole = (from: number, to: number = Number.MAX_SAFE_INTEGER) =>
  z
    .custom<number>(
      (value) => Number.isInteger(value) && Number(value) >= from && Number(value) <= to,
      `must be a whole number from ${from}${to === delayMaxMs ? ` to ${to}` : ''}`,
    )
    .optional();

const between = (from: number, to: number, why: string) =>
  z.custom<number>((value) => typeof value === 'number' && value >= from && value <= to, why).optional();

const share = z
  .custom<number>(
    (value) => typeof value === 'number' && value > 0 && value < 1,
    'must be a number between 0 and 1',
  )
  .optional();

const flag = z.boolean('must be true or false').optional();

const callable = z.custom((value) => typeof value === 'function', 'must be a function').optional();

/** Accepts a plain value, or an object whose issues keep their field paths. */
const plainOr = (isPlain: (value: unknown) => boolean, object: z.ZodObject, why: string): z.ZodOptional =>
  z
    .any()
    .superRefine((value, context) => {
      if (value === undefined || isPlain(value)) return;
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        context.addIssue({ code: 'custom', message: why });
      else for (const issue of object.safeParse(value).error?.issues ?? []) context.addIssue({ ...issue });
    })
    .optional();

const isFalse = (value: unknown) => value === false;

const keep = z
  .strictObject({
    turns: whole(1),
    share,
    over: z.enum(['fewer', 'split'], 'must be fewer or split').optional(),
    tokens: whole(1),
    ratio: share,
  })
  .superRefine((value, context) => {
    const kinds = (['turns', 'tokens', 'ratio'] as const).filter((kind) => value[kind] !== undefined);
    if (kinds.length !== 1)
      context.addIssue({ code: 'custom', message: 'must have one of turns, tokens and ratio' });
    if (kinds[0] === 'turns') return;
    for (const path of ['share', 'over'] as const)
      if (value[path] !== undefined)
        context.addIssue({ code: 'custom', path: [path], message: 'is valid only with turns' });
  });

const policy = z
  .strictObject({
    preset: z.enum(compactionPresets, `must be one of ${compactionPresets.join(', ')}`).optional(),
    enabled: flag,
    reserveTokens: whole(0),
    threshold: share,
    keep: plainOr(() => false, keep, 'must be an object of turns, tokens or ratio'),
    retryOnTransient: z
      .custom<boolean | number>(
        (value) => typeof value === 'boolean' || (Number.isInteger(value) && Number(value) >= 0),
        'must be true, false or a whole number from 0',
      )
      .optional(),
    smartRecovery: plainOr(
      isFalse,
      z.strictObject({ pruneToolOutputs: flag, chunkedSummarize: flag, dropMiddle: flag }),
      'must be false or an object of pruneToolOutputs, chunkedSummarize and dropMiddle',
    ),
    prune: plainOr(
      isFalse,
      z.strictObject({
        threshold: share,
        protect: z.array(z.string(), 'must be a list of tool names').optional(),
        keepFiles: whole(0),
        minTokens: whole(1),
      }),
      'must be false or an object of threshold, protect, keepFiles and minTokens',
    ),
    summary: plainOr(
      () => false,
      z.strictObject({
        maxOutputTokens: whole(1),
        share,
        timeoutMs: whole(1, delayMaxMs),
        temperature: between(0, 2, 'must be a number from 0 to 2'),
      }),
      'must be an object of maxOutputTokens, share, timeoutMs and temperature',
    ),
    countTokens: callable,
  })
  .superRefine(({ prune, threshold }, context) => {
    const { threshold: pruneFrom } = (prune ?? {}) as { threshold?: number };
    if (pruneFrom !== undefined && threshold !== undefined && pruneFrom >= threshold)
      context.addIssue({
        code: 'custom',
        path: ['prune', 'threshold'],
        message: 'must be less than threshold: pruning comes before compaction',
      });
  })
  .superRefine(({ reserveTokens, threshold }, context) => {
    if (reserveTokens !== undefined && threshold !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['threshold'],
        message: 'cannot be given with reserveTokens: both set the level of the trigger',
      });
  });

/** A preset or a policy. */
export const compactionField: z.ZodOptional = plainOr(
  (value) => compactionPresets.some((preset) => preset === value),
  policy,
  `must be one of ${compactionPresets.join(', ')}, or a policy`,
);

const modelWindow = z
  .strictObject({ window: whole(1), maxOutput: whole(1) }, 'must be an object of window and maxOutput')
  .superRefine(({ window, maxOutput = 0 }, context) => {
    if (window === undefined)
      context.addIssue({ code: 'custom', path: ['window'], message: 'must be a whole number from 1' });
    else if (maxOutput >= window)
      context.addIssue({ code: 'custom', path: ['maxOutput'], message: 'must be less than window' });
  });

/** An object from model names to windows, or a function. */
export const windowsField: z.ZodOptional = plainOr(
  (value) => typeof value === 'function',
  z.object({}).catchall(modelWindow),
  'must be an object from model names to windows, or a function',
);

/** Why a policy does not fit the configured windows: its reserve takes a whole one. Undefined if it fits. */
export function reserveFault(compaction: unknown, windows: unknown): string | undefined {
  const { reserveTokens } = (typeof compaction === 'object' ? (compaction ?? {}) : {}) as {
    reserveTokens?: unknown;
  };
  if (typeof reserveTokens !== 'number' || typeof windows !== 'object' || windows === null) return undefined;
  const small = Object.entries(windows).find(([, { window }]) => window <= reserveTokens);
  return small === undefined ? undefined : `must be less than the window of '${small[0]}'`;
}
