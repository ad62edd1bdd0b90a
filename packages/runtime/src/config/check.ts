import type { ViewPolicy } from '@tapedeck/tape';
import { redactFault, rulesOf, secretFault, secretNamePattern, type ViewRule } from '@tapedeck/tape/internal';
import { z } from 'zod';
import { builtinNames } from '../builtins/builtins.ts';
import { compactionField, reserveFault, windowsField } from '../compaction/check.ts';
import { messageOf } from '../errors.ts';
import { deliveryFields, peerKinds } from '../identity/delivery.ts';
import { personaNameFault } from '../identity/persona.ts';
import { templateFault } from '../identity/route.ts';
import { nameFault } from '../mcp/spec.ts';
import { settingsFault } from '../model/call-settings.ts';
import { specFault } from '../model/name.ts';
import { parseRules } from '../permissions/rule.ts';

/** What is wrong with a configuration. */
export interface ConfigFault {
  readonly field: string;
  readonly why: string;
  /** True if there is no such field. */
  readonly isUnknown: boolean;
}

/** The longest timer of Node.js, in milliseconds. It fires longer ones immediately. */
const delayMaxMs = 2 ** 31 - 1;

const whole = (from: number, to: number = Number.MAX_SAFE_INTEGER) =>
  z
    .custom(
      (value) => Number.isInteger(value) && Number(value) >= from && Number(value) <= to,
      `must be a whole number from ${from}${to === delayMaxMs ? ` to ${to}` : ''}`,
    )
    .optional();

const bound = z
  .custom(
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) >= 1),
    'must be a whole number from 1, or Infinity',
  )
  .optional();

const budget = z
  .strictObject(
    { steps: bound, tokens: bound, timeMs: bound, cost: z.number().positive().optional() },
    'must be a budget',
  )
  .optional();

const model = z
  .custom(
    (value) =>
      (typeof value === 'string' && value !== '') ||
      (typeof value === 'object' && value !== null && 'doStream' in value),
    'must be a string PROVIDER/MODEL, or a model of the AI SDK',
  )
  .superRefine((value, context) => {
    const isText = typeof value === 'string' && value !== '';
    if (isText && specFault(value) !== undefined)
      context.addIssue({
        code: 'custom',
        message: `must be PROVIDER/MODEL or script:FILE, not ${JSON.stringify(value)}`,
      });
  })
  .optional();

const settings = z
  .any()
  .superRefine((value, context) => {
    const fault = settingsFault(value);
    if (fault === undefined) return;
    const path = fault.field === '' ? [] : [fault.field];
    context.addIssue({ code: 'custom', path, message: fault.why });
  })
  .optional();

const tool = z.custom(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    'inputSchema' in value &&
    (!('execute' in value) || value.execute === undefined || typeof value.execute === 'function'),
  'must be a tool of the AI SDK',
);

const path = z.string('must be a path').min(1, 'must be a path');

const flag = z.boolean('must be true or false').optional();

const callable = z.custom((value) => typeof value === 'function', 'must be a function').optional();

/**
 * Accepts windows only: a view always starts at the last boundary, because handoffs and compaction shorten it
 * there.
 */
const shows = z
  .any()
  .superRefine((value: ViewPolicy, context) => {
    const rules: readonly ViewRule[] = [value ?? []].flat();
    try {
      const isWindow = (rule: unknown) => typeof rule === 'object' && rule !== null && 'window' in rule;
      if (!rules.every(isWindow)) throw new Error('it must be a window after the last boundary');
      rulesOf(rules);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `cannot be used: ${messageOf(error)}` });
    }
  })
  .optional();

const rules = z
  .union([z.string(), z.array(z.string())], 'must be rules: a text, or a list of texts')
  .superRefine((value, context) => {
    for (const [i, text] of [value].flat().entries())
      try {
        parseRules(text);
      } catch (error) {
        const path = Array.isArray(value) ? [i] : [];
        context.addIssue({ code: 'custom', path, message: `is no rule: ${messageOf(error)}` });
      }
  })
  .optional();

const texts = z.record(z.string(), z.string('must be a text'), 'must be an object of texts').optional();

/** What both kinds of servers have in common. */
const calls = { timeoutMs: whole(1, delayMaxMs) };

const program = z.strictObject({
  command: z.string('must be a program').min(1, 'must be a program'),
  args: z.array(z.string('must be a text'), 'must be a list of texts').optional(),
  env: texts,
  cwd: path.optional(),
  ...calls,
});

const address = z.strictObject({
  url: z.string('must be an address').regex(/^(?:https?:\/\/|\$\{)/, 'must begin with http:// or https://'),
  headers: texts,
  ...calls,
});

function issueText(issue: { readonly code: string; readonly message: string }): string {
  return issue.code === 'unrecognized_keys' ? 'has an unknown field' : issue.message;
}

const mcpServers = z
  .record(z.string(), z.any(), 'must be an object of servers')
  .superRefine((servers, context) => {
    const wrong = nameFault(Object.keys(servers));
    if (wrong !== undefined) context.addIssue({ code: 'custom', path: [wrong.name], message: wrong.why });
    for (const [name, server] of Object.entries(servers)) {
      const isObject = typeof server === 'object' && server !== null;
      const kinds = isObject ? ['command', 'url'].filter((kind) => kind in server) : [];
      if (kinds.length !== 1)
        context.addIssue({ code: 'custom', path: [name], message: 'must have a command or a url' });
      else
        for (const issue of (kinds[0] === 'url' ? address : program).safeParse(server).error?.issues ?? [])
          context.addIssue({ code: 'custom', path: [name, ...issue.path], message: issueText(issue) });
    }
  })
  .optional();

/** What is wrong with a secret never contains it. */
const secrets = z
  .record(z.string(), z.any(), 'must be an object of texts')
  .superRefine((value, context) => {
    for (const [name, secret] of Object.entries(value)) {
      const why = !secretNamePattern.test(name)
        ? 'must have a name of letters, digits, _, . and -'
        : typeof secret === 'string'
          ? secretFault(secret)
          : 'must be a text';
      if (why !== undefined) context.addIssue({ code: 'custom', path: [name], message: why });
    }
  })
  .optional();

const redact = z
  .any()
  .superRefine((value, context) => {
    const fault = redactFault(value);
    if (fault !== undefined) context.addIssue({ code: 'custom', path: [...fault.path], message: fault.why });
  })
  .optional();

const names = z.array(z.string('must be a name'), 'must be a list of names').optional();

const persona = z.strictObject(
  {
    instructions: z.string('must be a text').optional(),
    model: z
      .string('must be a text PROVIDER/MODEL')
      .superRefine((value, context) => {
        if (specFault(value) !== undefined)
          context.addIssue({
            code: 'custom',
            message: `must be PROVIDER/MODEL or script:FILE, not ${JSON.stringify(value)}`,
          });
      })
      .optional(),
    settings,
    tools: names,
    uses: names,
    permissions: rules,
  },
  'must be an object of instructions, model, settings, tools, uses and permissions',
);

/** A record of zod leaves out `__proto__`, which JSON and YAML can have. */
const personas = z
  .any()
  .superRefine((value, context) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      context.addIssue({ code: 'custom', message: 'must be an object of personas' });
      return;
    }
    for (const [name, one] of Object.entries(value)) {
      const fault = personaNameFault(name);
      if (fault !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: `cannot have this name: ${fault}` });
      for (const issue of persona.safeParse(one).error?.issues ?? []) {
        const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
        const message = unknown.length > 0 ? 'is no field of a persona' : issue.message;
        context.addIssue({ code: 'custom', path: [name, ...issue.path, ...unknown], message });
      }
    }
  })
  .optional();

/** What a route can compare in a group of fields. */
const compared = (group: string, own: Readonly<Record<string, z.ZodType>>) =>
  z
    .strictObject(
      {
        ...Object.fromEntries(
          deliveryFields
            .filter((field) => field.startsWith(`${group}.`))
            .map((field) => [
              field.slice(group.length + 1),
              z.union([z.string(), z.boolean()], 'must be a text, or true or false').optional(),
            ]),
        ),
        ...own,
      },
      `must be an object of fields of ${group}`,
    )
    .optional();

const routes = z
  .array(
    z.strictObject(
      {
        name: z.string('must be a text').min(1, 'must be a text'),
        match: z
          .strictObject(
            {
              principal: compared('principal', {
                type: z.enum(['known', 'unknown'], 'must be known or unknown').optional(),
              }),
              delivery: compared('delivery', {
                peer_kind: z.enum(peerKinds, `must be one of ${peerKinds.join(', ')}`).optional(),
              }),
            },
            'must be an object of principal and delivery',
          )
          .optional(),
        session: z.strictObject(
          {
            key: z.any().superRefine((value, context) => {
              const fault = templateFault(value);
              if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
            }),
            persona: z.string('must be the name of a persona').optional(),
          },
          'must be an object of key and persona',
        ),
      },
      'must be an object of name, match and session',
    ),
    'must be a list of routes',
  )
  .superRefine((value, context) => {
    for (const [i, { name }] of value.entries())
      if (value.findIndex((one) => one.name === name) < i)
        context.addIssue({ code: 'custom', path: [i, 'name'], message: 'is the name of an earlier route' });
  })
  .optional();

const fields = z.strictObject(
  {
    model,
    settings,
    summarizer: model,
    titles: model,
    tools: z.record(z.string(), tool, 'must be an object of tools').optional(),
    builtinTools: z
      .array(
        z.enum(builtinNames, `must be one of ${builtinNames.join(', ')}`),
        'must be a list of names of built-in tools',
      )
      .optional(),
    mcpServers,
    instructions: z
      .union([z.string(), z.record(z.string(), z.string())], 'must be a string, or an object of strings')
      .optional(),
    prompt: z
      .strictObject(
        {
          project: z.union([z.boolean(), path], 'must be true, false or a directory').optional(),
          skills: z.array(path, 'must be a list of folders').optional(),
          environment: flag,
          tools: flag,
        },
        'must be an object of project, skills, environment and tools',
      )
      .optional(),
    limits: z
      .strictObject(
        {
          maxSteps: bound,
          toolTimeoutMs: whole(1, delayMaxMs),
          concurrentTools: whole(1),
          retries: whole(0),
          retryDelayMs: whole(0, delayMaxMs),
          maxRetryAfterMs: whole(0, delayMaxMs),
          abortGraceMs: whole(0, delayMaxMs),
          maxDepth: bound,
          maxChildren: bound,
          maxTree: bound,
          concurrentChildren: bound,
          concurrentCalls: z.union([bound, z.record(z.string(), bound)]).optional(),
          concurrentMcpServers: whole(1),
          mcpStartTimeoutMs: whole(1, delayMaxMs),
          mcpResultBytes: whole(1),
        },
        'must be an object of limits',
      )
      .optional(),
    permissions: rules,
    projectPermissions: rules,
    view: shows,
    compaction: compactionField,
    windows: windowsField,
    budget: z.strictObject({ child: budget, tree: budget }, 'must be an object of budgets').optional(),
    cost: callable,
    onApproval: callable,
    hooks: z
      .strictObject({ onMessage: callable, onRewind: callable }, 'must be an object of functions')
      .optional(),
    routes,
    personas,
    secrets,
    redact,
    record: z.enum(['raw', 'none'], 'must be raw or none').optional(),
  },
  'it must be an object',
);

/** Checks across fields. A cost limit without a cost function would never be reached. */
const deckConfig = fields.superRefine((config, context) => {
  const { budget: given, cost, compaction, windows, routes: ways = [], personas: known = {} } = config;
  for (const [i, { session }] of ways.entries())
    if (session.persona !== undefined && !Object.hasOwn(known, session.persona))
      context.addIssue({
        code: 'custom',
        path: ['routes', i, 'session', 'persona'],
        message: `names ${JSON.stringify(session.persona)}, which is not in personas`,
      });
  const reserve = reserveFault(compaction, windows);
  if (reserve !== undefined)
    context.addIssue({ code: 'custom', path: ['compaction', 'reserveTokens'], message: reserve });
  for (const name of ['child', 'tree'] as const)
    if (given?.[name]?.cost !== undefined && cost === undefined)
      context.addIssue({
        code: 'custom',
        path: ['budget', name, 'cost'],
        message: 'requires the cost function, which computes the cost of a call',
      });
});

/** The first fault of a configuration: the path of the invalid field, and why. Undefined without a fault. */
export function configFault(value: unknown): ConfigFault | undefined {
  const [issue] = deckConfig.safeParse(value).error?.issues ?? [];
  if (issue === undefined) return undefined;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return {
    field: [...issue.path, ...unknown].map(String).join('.'),
    why: unknown.length > 0 ? 'unknown field' : issue.message,
    isUnknown: unknown.length > 0,
  };
}
