import { contract, errorCodes, type Form, type JsonSchema, jsonSchema } from '@tapedeck/cli/contract';
import { defaultLimits } from '@tapedeck/runtime';
import { verbs } from '../../packages/cli/dist/verbs/index.js';
import { nameOf, type Verb } from '../../packages/cli/dist/verbs/verb.js';

/** An option or positional as a verb declares it to yargs. */
interface Declared {
  readonly name: string;
  readonly positional: boolean;
  readonly type?: string;
  readonly describe?: string;
  readonly choices?: readonly string[];
  readonly default?: unknown;
  readonly demandOption?: boolean;
}

type Declaration = Omit<Declared, 'name' | 'positional'>;

/** What a verb declares, positionals first, noted by an object that only looks like yargs. */
function declarations(verb: Verb): Declared[] {
  const noted: Declared[] = [];
  const recorder: unknown = new Proxy(
    {},
    {
      get: (_target, method: string) => (name: string, given: Declaration) => {
        if (method === 'positional' || method === 'option')
          noted.push({ ...given, name, positional: method === 'positional' });
        return recorder;
      },
    },
  );
  verb.options(recorder as Parameters<Verb['options']>[0]);
  return noted.toSorted((a, b) => Number(b.positional) - Number(a.positional));
}

/** The whole reference, as `docs/cli.md` holds it. */
export function cliReference(): string {
  const groups = [...new Set(verbs.map((verb) => verb.group))];
  return `${[
    head,
    ...groups.flatMap((group) => [
      `## ${group}`,
      ...verbs.filter((verb) => verb.group === group).map(section),
    ]),
    '## Shapes',
    'Objects that several verbs print. [`tape schema`](#schema) has them under `$defs`.',
    ...Object.entries(shapes).map(shapeSection),
    '## Errors',
    errorsIntro,
    table(
      ['code', 'exit', 'meaning'],
      Object.entries(errorCodes).map(([code, [exit, what]]) => [`\`${code}\``, String(exit), what]),
    ),
  ].join('\n\n')}\n`;
}

const limitMeanings: Readonly<Record<keyof typeof defaultLimits, string>> = {
  maxSteps: 'model calls of a run at most; `Infinity`, in YAML `.inf`, for no bound',
  toolTimeoutMs: 'milliseconds that a tool call may take',
  concurrentTools: 'tool calls of one answer that run at once',
  retries: 'how often a model call that failed for a passing reason is tried again',
  retryDelayMs: 'milliseconds before the first of these; longer before each further one',
  abortGraceMs: 'milliseconds that an aborted run waits for tools that do not stop',
  maxDepth: 'forks between a session and its root, of children that are forked to be run',
  maxChildren: 'children of one session that are unfinished at a time',
  concurrentChildren: 'children of one depth that a process runs at once',
  concurrentCalls:
    'model calls that a process makes at once: of each provider, or by name of the providers that have a bound',
};

function limitRows(): string {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.entries(limitMeanings)
    .map(([name, meaning]) => {
      const value = defaultLimits[name as keyof typeof defaultLimits];
      return `| \`limits.${name}\` | \`limits.${snake(name)}\` | ${meaning} (default ${value}) |`;
    })
    .join('\n');
}

const head = `<!-- Generated from packages/cli/src/verbs and packages/cli/src/contract by test/docs/cli.test.ts. Write it anew with:
     UPDATE_DOCS=1 npx vitest run --project e2e test/docs -->

# The \`tape\` command

\`\`\`
tape <verb> [session[@point]] [options]
\`\`\`

From the checkout it is \`pnpm tape …\`. What the words mean is in [glossary.md](glossary.md).

**Sessions and points.** A session is named by its name, an alias, its ULID, or the beginning of its ULID when that fits one
session only. A point is \`@42\` (a position), \`@task-start\` (an anchor; of several of a name, the last), \`@task-start~1\` (the
one before the last) or \`@head\`. Session names may contain \`@\`: the longest name that exists wins, and what follows it is the
point.

**Text arguments.** Those that say so take \`-\` for standard input and \`@FILE\` for a file's contents.

**Output.** What was asked for is on stdout; status, hints and errors are on stderr, and so is what tools print with \`console\`. With \`--json\` stdout has one JSON document
and nothing else. With \`--jsonl\` the verbs that list entries or sessions print one object a line, and the others the same document,
but for \`graph\` and \`log --graph\`, which draw. A later version may add fields to any object; [\`tape schema\`](#schema) has the fields of this version as JSON Schema, and \`@tapedeck/cli/contract\` has them as zod schemas. What could steer a terminal is printed to people as an escape (\`\\u{1b}\`); JSON has it unchanged.

**Models.** \`run\`, \`send\`, \`approve\`, \`delegate\` and \`recover\` take \`--model\`, else the model that the session's last message named (\`--model\` of an
earlier \`run\` or \`send\`: a session goes on with it), else \`$TAPE_MODEL\`, else what is [configured](#configuration):

| model | needs |
| --- | --- |
| \`openai-compatible/NAME\` | \`OPENAI_BASE_URL\` and \`OPENAI_API_KEY\` |
| \`anthropic/NAME\`, \`openai/NAME\`, \`google/NAME\` | the AI SDK's package for it, installed beside the project, and \`ANTHROPIC_API_KEY\`, \`OPENAI_API_KEY\` or \`GOOGLE_GENERATIVE_AI_API_KEY\`; without that package, the AI Gateway |
| anything else of the form \`PROVIDER/NAME\` | the AI Gateway: \`AI_GATEWAY_API_KEY\` |
| \`script:FILE\` | nothing: scripted answers, offline |

A script is a JSON array of answers: \`[{"text"?, "toolCalls"?: [{"name", "input", "id"?}], "delayMs"?, "usage"?: {"input"?, "output"?},
"error"?, "when"?: {"session"?: GLOB, "text"?: PART_OF_THE_LAST_USER_MESSAGE}}]\`. A call is given the first answer that matches its
\`when\` and that the session was not given yet; which those are is read from the tape, so it holds across processes.

## Configuration

\`run\`, \`send\`, \`approve\`, \`delegate\`, \`recover\` and what else asks a model or tells of it (\`merge --strategy summary\`, \`view --instructions\`) read two files. What both say is taken from the first, limits one by one.

* \`tape.config.mts\`, whose default export is \`defineDeck({ … })\` of \`@tapedeck/runtime\` or a plain object of that form. It is the file that
  \`--config FILE\` names; else the nearest \`tape.config.mts\`, \`.mjs\` or \`.js\` from the working directory upward, as far as
  \`$HOME\`; else the one beside the tape home. \`--no-config\` loads none. Node.js removes the types, so that TypeScript which has to be compiled
  (\`enum\`, \`namespace\`) is refused. What it imports is looked up from where it is: tape lends it no packages.
* \`config.yaml\` in the tape home: the part that is data.

A \`tape.config.mts\` is code and can do whatever you can. One that was found, and not named with \`--config\`, is not run until its directory is
trusted, and again after the file has changed: see [\`tape trust\`](#trust). It must be a file of its own there, not a link. What the file imports is not
looked at.

| \`tape.config.mts\` | \`config.yaml\` | meaning |
| --- | --- | --- |
| \`model\` | \`model\` | the model, as \`--model\` takes it, or in code any model of the AI SDK; a relative \`script:FILE\` is relative to the configuration |
| \`summarizer\` | \`summarizer\` | the model that writes summaries; by default the session's own |
| \`windows\` | \`windows\` | by the names of models, with or without their provider (\`gpt-oss-20b\`; of every script \`script\`), how many tokens they take: \`{ window, maxOutput? }\`, in YAML \`max_output\`; in code also a function. A session of a model that is not told of is summarised once the model refuses it |
| \`view\` | \`view\` | what of a session its model is shown, from the last boundary on: \`{ window: 20 }\` messages, \`{ window: { tokens: 8000 } }\`, in YAML as \`--policy\` has them (\`window:20\`, \`window:8000-tokens\`); by default all. Summaries are made of all |
| \`compaction\` | \`compaction\` | when sessions are summarised, and how: \`reserve\` (default), \`reserve-16k\`, \`at-85\`, \`at-90\`, or a [policy](library.md#compaction), in YAML in snake_case |
| \`instructions\` | \`instructions\` | what every model call is told first: a text, or texts by their headings |
| \`prompt.project\` | \`prompt.project\` | \`true\`: and \`AGENTS.md\`, \`CLAUDE.md\` and \`CONTEXT.md\` from the top of the repository (else your own directory) down to the working directory; or to a directory that is named |
| \`prompt.skills\` | \`prompt.skills\` | and the names of the skills in these folders: each has a \`SKILL.md\`, or folders that have; the tool \`read_skill\` reads one |
| \`prompt.environment\` | \`prompt.environment\` | \`true\`: and platform, directory, git branch, date and model, as they were when the view began |
| \`prompt.tools\` | \`prompt.tools\` | \`true\`: and the tools, in words |
| \`tools\` | | tools of the AI SDK, by name; delegated children get them too |
${limitRows()}
| \`budget.child\` | | what a delegated child may take that is given no \`--budget\`: \`{ steps?, tokens?, timeMs?, cost? }\` |
| \`budget.tree\` | | what such a child and all under it may take together, where nothing above it bounds that |
| \`cost\` | | a function of the usage and the model's name: what a model call cost, or \`undefined\` |
| \`onApproval\` | | a function that is asked before a tool that needs approval is run: \`{ approved, reason? }\`, or \`undefined\` to wait |
| \`hooks\` | | functions: \`onMessage\`, called before a message of a user lands, may return \`{ snapshotId }\`, which is kept with it; \`onRewind\` is called after a rewind, with the snapshot of the message that it went back to. What they fail of is a warning |

## Options of every verb

| option | meaning |
| --- | --- |
| \`--home DIR\` | the tape home; else \`$TAPE_HOME\`, else the nearest \`.tape\` upward from here, else \`~/.tape\` |
| \`--json\` | print one JSON document on stdout; errors as JSON on stderr |
| \`--jsonl\` | print JSON lines on stdout; errors as JSON on stderr |
| \`--quiet\` | print the id alone, and no status |
| \`--color\`, \`--no-color\` | colour or not; by default on a terminal, unless \`$NO_COLOR\` is set |
| \`--durability fast\` | do not wait for the disk: a power cut may lose the last moments; by default \`full\` |
| \`--help\`, \`-h\` | help for any verb |
| \`--version\` | the version |

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done, or there already; also when the reader of stdout went away |
| 1 | failed |
| 2 | wrong usage, or a name or content that is not allowed |
| 3 | not found |
| 4 | busy, taken, or in conflict with what is recorded |
| 5 | damaged |
| 6 | accepted and durable, but not done yet |
| 130 | interrupted |

2 is also the code of \`tape\` without a verb. Every verb that opens a home can fail with 1 (it cannot be opened), 4 (its lock is
held) or 5 (it is damaged); the lists below name what is particular to each.`;

const errorsIntro = `An error is two lines on stderr at most: \`Error: …\`, and \`Hint: …\` where the next command is known. With \`--json\` or \`--jsonl\`
it is one line:

\`\`\`json
{"error":{"code":"TAPE_NO_SESSION","message":"cannot find session 'mian': no such name, alias or id","hint":"did you mean 'main'? All sessions: tape sessions","data":{"session":"mian","near":["main"]}}}
\`\`\`

\`hint\` may be missing; \`data\` is always an object. Branch on the code or the exit code, never on the message.`;

function section(verb: Verb): string {
  const name = nameOf(verb);
  const options = declarations(verb);
  const also = (verb.aliases ?? []).map((alias) => ` Also \`tape ${alias}\`.`).join('');
  const grammar = options.some(({ positional }) => !positional) ? `${verb.command} [options]` : verb.command;
  const told = contract[name];
  if (told === undefined) throw new Error(`packages/cli/src/contract does not have '${name}'`);
  const ends = Object.entries(told.exits).map(([code, why]) => `${code}: ${why}`);
  return [
    `### ${name}`,
    `\`\`\`\ntape ${grammar}\n\`\`\``,
    `${verb.summary}.${also}${verb.detail === undefined ? '' : ` ${verb.detail}`}`,
    ...(options.length === 0 ? [] : [table(['argument', 'meaning'], options.map(optionRow))]),
    `\`\`\`sh\n${verb.examples.map(([command, does]) => `# ${does}\n${command}`).join('\n')}\n\`\`\``,
    ...(told.json.length === 0
      ? ['It has no JSON form.']
      : told.json.map((form, i) => jsonForm(form, schemaOf(name, i)))),
    `\`--quiet\` prints ${told.quiet}.`,
    ...(ends.length === 0 ? [] : [`Exit codes: ${ends.join('; ')}.`]),
  ].join('\n\n');
}

function optionRow({ name, positional, type, describe, choices, default: value, demandOption }: Declared) {
  const argument = choices?.join('|') ?? argumentOf(type);
  const shown = positional ? name : `--${name}${argument === '' ? '' : ` ${argument}`}`;
  const more = [
    ...(demandOption === true && !positional ? ['required'] : []),
    ...(type === 'array' ? ['may be repeated'] : []),
    ...(value === undefined ? [] : [`default ${String(value)}`]),
  ];
  return [`\`${shown}\``, `${describe ?? ''}${more.length === 0 ? '' : ` (${more.join('; ')})`}`];
}

function argumentOf(type: string | undefined): string {
  return type === 'boolean' ? '' : type === 'number' ? 'N' : 'TEXT';
}

const { properties: outputs = {}, $defs = {} } = jsonSchema();
const { Error: _error, ...shapes } = $defs;

/** The schema of one form of a verb, with the shared shapes as references. */
function schemaOf(verb: string, form: number): JsonSchema {
  const output = schemaIn(outputs[verb]);
  return schemaIn(contract[verb]?.json.length === 1 ? output : output.anyOf?.[form]);
}

/** A schema inside of a schema; the contract has none that is a mere true or false. */
function schemaIn(value: JsonSchema | boolean | undefined): JsonSchema {
  if (typeof value !== 'object') throw new Error('a part of the contract has no schema');
  return value;
}

function jsonForm({ when, prints }: Form, schema: JsonSchema): string {
  const of = Array.isArray(schema.items) ? undefined : schema.items;
  const object = of === undefined ? schema : schemaIn(of);
  const shape = object.$ref === undefined ? undefined : typeOf(object);
  const what =
    prints === 'lines'
      ? `one ${shape ?? 'object'} a line`
      : of === undefined
        ? `one ${shape ?? 'object'}`
        : `one array of ${shape ?? 'objects'}`;
  const intro = `JSON${when === undefined ? '' : ` (${when})`}: ${what}.`;
  return shape === undefined ? `${intro}\n\n${fieldTable(object)}` : intro;
}

function shapeSection([name, schema]: [string, JsonSchema]): string {
  return `### Shape: ${name}\n\n${schema.description}\n\n${fieldTable(schema)}`;
}

function fieldTable(object: JsonSchema): string {
  return table(['field', 'type', 'meaning'], fieldRows(object));
}

/** A row for each field, followed by rows for those fields inside of it that have a description. */
function fieldRows({ properties = {}, required = [] }: JsonSchema, path = ''): string[][] {
  return Object.entries(properties).flatMap(([name, value]) => {
    const field = schemaIn(value);
    const { schema: inner, suffix } = innerOf(field);
    const description = field.description ?? schemaIn(field.anyOf?.[0] ?? field).description ?? '';
    if (description === '') {
      if (path === '') throw new Error(`the contract does not describe the field '${name}'`);
      return [];
    }
    const optional = required.includes(name) ? '' : '?';
    return [
      [`\`${path}${name}\`${optional}`, typeOf(field), description],
      ...fieldRows(inner, `${path}${name}${suffix}.`),
    ];
  });
}

/** The object in a field that may be null, or a list of objects. */
function innerOf(field: JsonSchema): { readonly schema: JsonSchema; readonly suffix: string } {
  const schema = schemaIn(field.anyOf?.[0] ?? field);
  if (schema.items === undefined || schema.items === false || Array.isArray(schema.items))
    return { schema, suffix: '' };
  return { schema: schemaIn(schema.items), suffix: '[]' };
}

function typeOf(schema: JsonSchema): string {
  const { $ref, anyOf, type, prefixItems, items, properties, required = [] } = schema;
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? '';
    return `[\`${name}\`](#shape-${name.toLowerCase()})`;
  }
  if (anyOf !== undefined) return anyOf.map((one) => typeOf(schemaIn(one))).join(' or ');
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(' | ');
  if (prefixItems !== undefined) return `[${prefixItems.map((one) => typeOf(schemaIn(one))).join(', ')}]`;
  if (typeof items === 'object' && !Array.isArray(items)) return `array of ${typeOf(items)}`;
  if (properties !== undefined) {
    const names = Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`));
    return `\`{${names.join(', ')}}\``;
  }
  return [type ?? 'any'].flat().join(' or ');
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}
