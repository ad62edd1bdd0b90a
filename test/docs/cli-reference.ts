import { contract, errorCodes, type Form, type JsonSchema, jsonSchema } from '@tapedeck/cli/contract';
import {
  allVerbs,
  nameOf,
  type Option,
  type Topic,
  topics,
  type Verb,
  wordsOf,
} from '@tapedeck/cli/internal';
import { defaultLimits } from '@tapedeck/runtime';

const verbs = await allVerbs();

/** An argument or an option as a verb declares it. */
interface Declared extends Partial<Option> {
  readonly name: string;
  readonly positional: boolean;
}

/** The declarations of a verb that help shows, arguments first. */
function declarations(verb: Verb): Declared[] {
  const own = wordsOf(verb).map(({ name, required }) => {
    const argument = verb.arguments?.[name];
    return {
      name,
      positional: true,
      required,
      ...(typeof argument === 'string' ? { describe: argument } : argument),
    };
  });
  const options = Object.entries(verb.options ?? {}).map(([name, option]) => ({
    ...option,
    name,
    positional: false,
  }));
  return [...own, ...options.filter(({ hidden }) => hidden !== true)];
}

/** The whole reference, as `docs/cli.md` holds it. */
export function cliReference(): string {
  const groups = [...new Set(verbs.map((verb) => verb.group))];
  const page = [
    head,
    '## Topics',
    '`tape help TOPIC` prints each.',
    ...topics.map(topicSection),
    '## Verbs',
    table(
      ['verb', 'what it does'],
      verbs.map((verb) => [`[\`tape ${verb.command}\`](#${nameOf(verb)})`, verb.summary]),
    ),
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
  ].join('\n\n');
  const parts = page.split(/(^```[\s\S]*?^```$)/m);
  return `${parts.map((part) => (part.startsWith('```') ? part : wrapProse(part))).join('')}\n`;
}

function topicSection({ name, summary, page }: Topic): string {
  const parts = page.sections.flatMap(({ title, blocks }) => [
    ...(title === undefined ? [] : [`**${title}.**`]),
    ...blocks.map((block) => {
      if (typeof block === 'string') return block;
      return 'lines' in block
        ? `\`\`\`\n${block.lines.join('\n')}\n\`\`\``
        : table([name, 'meaning'], block.terms);
    }),
  ]);
  return [`### Topic: ${name}`, `${summary}.`, ...parts].join('\n\n');
}

function wrapProse(text: string): string {
  return text.split('\n').flatMap(wrapped).join('\n');
}

/** The lines of a line of prose, of at most 110 characters; a row of a table stays whole. */
function wrapped(line: string): string[] {
  if (line.length <= 120 || /^(?:\||<!--)/.test(line)) return [line];
  const lines: string[] = [];
  let last = '';
  for (const word of line.split(' ')) {
    if (last !== '' && last.length + 1 + word.length > 110) {
      lines.push(last);
      last = '';
    }
    last += last === '' ? word : ` ${word}`;
  }
  return [...lines, last];
}

const limitMeanings: Readonly<Record<keyof typeof defaultLimits, string>> = {
  maxSteps: 'maximum number of model calls of a run; `Infinity`, in YAML `.inf`, for no limit',
  toolTimeoutMs: 'timeout of a tool call in milliseconds',
  concurrentTools: 'tool calls of one answer that run at once',
  retries: 'maximum number of retries of a model call after a transient failure',
  retryDelayMs: 'milliseconds before the first retry; longer before each further one',
  maxRetryAfterMs:
    'longest delay before a retry that a provider may request, in milliseconds; a longer one fails the run at once with `SESSION_RETRY_LATER`',
  abortGraceMs: 'milliseconds that an aborted run waits for tools that do not stop',
  maxDepth: 'maximum number of forks between a delegated child and its root',
  maxChildren: 'maximum number of unfinished children of a session; `Infinity` for no limit, here and below',
  maxTree: 'maximum number of unfinished children below one root, at any depth',
  concurrentChildren: 'children of one depth that a process runs at once',
  concurrentCalls:
    'model calls that a process makes at once: for each provider, or by name for the limited providers',
  concurrentMcpServers: 'MCP servers that run at once; for one more, the one that was idle longest is ended',
  mcpStartTimeoutMs: 'milliseconds that an MCP server may take to start, and to list its tools',
  mcpResultBytes: 'most bytes of an answer of an MCP server; a call with a larger one fails',
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

const head = `<!-- Generated from packages/cli/src/verbs and packages/cli/src/contract by test/docs/cli.test.ts. Regenerate it with:
     UPDATE_DOCS=1 pnpm exec vitest run --project e2e test/docs -->

# The \`tape\` command

\`\`\`
tape <verb> [session[@point]] [options]
\`\`\`

In a checkout, run \`pnpm tape …\`. The [glossary](glossary.md) defines the terms.

**Text arguments.** Arguments marked (-, @FILE) accept \`-\` for standard input and \`@FILE\` for the contents of a file.
A text that begins with \`@\` is written with \`@@\`. The words of \`run\`, \`send\` and \`search\` need no quotes: they are joined with blanks.
\`--\` ends the options: the words after it are arguments, also those that begin with a dash.

**Output.** Results are on stdout. Status, hints, errors, and \`console\` output of tools are on stderr. With \`--json\` stdout has one
JSON document and nothing else. With \`--jsonl\` verbs that list entries or sessions print one object per line; other verbs print
the same document as with \`--json\`, except \`graph\` and \`log --graph\`, which draw. A later version may add fields to any object;
[\`tape schema\`](#schema) prints the fields of this version as JSON Schema, and \`@tapedeck/cli/contract\` exports them as zod
schemas. Text output shows characters that could steer a terminal as escapes (\`\\u{1b}\`); JSON output has them unchanged.

## Configuration

[Topic: config](#topic-config) is the short form. Verbs that use a model (\`run\`, \`send\`, \`approve\`, \`delegate\`, \`recover\`, \`compact\`, \`rewind\`, \`merge --strategy summary\`) or show its instructions
(\`view --instructions\`) read two files. The first has precedence, for each field and each limit.

* \`tape.config.mts\`, whose default export is \`defineDeck({ … })\` of \`@tapedeck/runtime\`, or a plain object of that
  form. tape loads the file given with \`--config FILE\`; else the nearest \`tape.config.mts\`, \`.mjs\` or \`.js\`
  from the working directory up to \`$HOME\`; else the one beside the tape home. \`--no-config\` loads none. Node.js
  strips the types, so TypeScript that requires compilation (\`enum\`, \`namespace\`) is refused. Its imports resolve from its own location: install the packages that it imports there.
* \`config.yaml\` in the tape home, for the plain-data fields.

A \`tape.config.mts\` is code that runs with your permissions. Unless it is given with \`--config\`, tape does not run it until you trust its
directory, and again after the file changes: see [\`tape trust\`](#trust). It must be a regular file, not a symbolic link. Trust covers the
local files that it imports.

| \`tape.config.mts\` | \`config.yaml\` | meaning |
| --- | --- | --- |
| \`model\` | \`model\` | the model, in the syntax of \`--model\`, or in code any AI SDK model; a relative \`script:FILE\` is relative to the configuration |
| \`settings\` | \`settings\` | settings of model calls: \`{ temperature?, effort?, providerOptions? }\`, in YAML \`provider_options\`; those of a session and of a run have precedence, one by one. \`providerOptions\` are the AI SDK's, by provider, without keys, headers, addresses and models |
| \`summarizer\` | \`summarizer\` | the model that writes summaries; default: the model of the session |
| \`titles\` | \`titles\` | the model that writes the title of a session, in a small call after its first answer; default: none, and lists show the beginning of the first prompt |
| \`windows\` | \`windows\` | context windows in tokens, by model name with or without provider (\`gpt-oss-20b\`; \`script\` for all scripts): \`{ window, maxOutput? }\`, in YAML \`max_output\`; in code also a function. Without a window, a session is summarised when the model refuses it as too long |
| \`view\` | \`view\` | limit of the view since the last boundary: \`{ window: 20 }\` messages or \`{ window: { tokens: 8000 } }\`, in YAML in the syntax of \`--policy\` (\`window:20\`, \`window:8000-tokens\`); default: no limit. Summaries are made of the whole view |
| \`compaction\` | \`compaction\` | when and how sessions are summarised: \`reserve\` (default), \`reserve-16k\`, \`at-85\`, \`at-90\`, or a [policy](library.md#compaction), in YAML in snake_case |
| \`redact\` | \`redact\` | where what has the form of a secret is replaced by its kind: \`true\` (default) in outputs of tools and in errors, \`all\` in all that is written, \`false\` nowhere; or \`{ in, patterns }\`, with \`in\` \`results\` or \`all\`, and further forms by name as regular expressions, each looked for within a line |
| \`instructions\` | \`instructions\` | instructions for every model call: a text, or texts by heading |
| \`prompt.project\` | \`prompt.project\` | \`true\`: add \`AGENTS.md\`, \`CLAUDE.md\` and \`CONTEXT.md\` from the root of the repository (else your home directory) down to the working directory; a path: down to that directory |
| \`prompt.skills\` | \`prompt.skills\` | add the names of the skills in these folders: each has a \`SKILL.md\`, or subfolders with one; the tool \`read_skill\` reads a skill |
| \`prompt.environment\` | \`prompt.environment\` | \`true\`: add platform, directory, git branch, date and model, as of the start of the view |
| \`prompt.tools\` | \`prompt.tools\` | \`true\`: add a description of the tools |
| \`mcpServers\` | \`mcp_servers\` | MCP servers by name, whose tools sessions may call as \`mcp_NAME_TOOL\`: \`{ command, args?, env?, cwd? }\` or \`{ url, headers? }\`, each with \`timeoutMs?\`, in YAML \`timeout_ms\`; \`\${VARIABLE}\` in arguments, variables, addresses and headers stands for one of the environment. See [MCP](guide/mcp.md) |
| \`builtinTools\` | \`builtin_tools\` | names of [built-in tools](guide/tools.md), such as \`[read_file, search_files]\`; in a deck without rules those of \`sandboxed\` count then |
| \`record\` | \`record\` | \`raw\`: keep the [raw traffic](guide/recovery-and-audit.md#raw-traffic) of all sessions; \`none\`: of no session, also of those made with \`--record raw\` |
| \`tools\` | | AI SDK tools, by name; delegated children receive them too |
${limitRows()}
| \`budget.child\` | | budget of a delegated child without \`--budget\`: \`{ steps?, tokens?, timeMs?, cost? }\` |
| \`budget.tree\` | | budget of a delegated child together with its descendants, unless an ancestor has one |
| \`cost\` | | function of the usage and the model name: returns the cost of a model call, or \`undefined\` |
| \`onApproval\` | | function, called before a tool that needs approval runs: returns \`{ approved, reason? }\`, or \`undefined\` to leave the call pending |
| \`hooks\` | | functions: \`onMessage\`, called before a user message is appended, may return \`{ snapshotId }\`, which is stored with the message; \`onRewind\` is called after a rewind with the snapshot of the message that was rewound to. A failure of a hook is a warning |
| \`secrets\` | | texts by name, such as \`{ SEARCH_KEY: process.env.SEARCH }\`: \`[secret SEARCH_KEY]\` takes the place of each [where it would be written or printed](../SECURITY.md#secrets-on-a-tape). At least 8 characters; no numbers |

### Aliases

\`alias.NAME\` of \`config.yaml\` makes \`tape NAME\` stand for a verb with words of its command line. The words are split as a shell splits them, and nothing is expanded or run; what the line has beside the name is kept. A verb comes before an alias of its name, and an alias does not stand for another one. \`config.yaml\` is read only for a line that names no verb. Aliases of a file that came with a home do not run: set them again with \`tape config set\`.

## Options of every verb

| option | meaning |
| --- | --- |
| \`--home DIR\` | tape home; default: \`$TAPE_HOME\`, else the nearest \`.tape\` from the working directory upward, else \`~/.tape\` |
| \`--base NAME\` | realm of the session names, which gives tapes \`NAME:SESSION\`; default: that of the home (\`tape init --base\`), else \`tape\` |
| \`--id TEXT\` | in the place of the session, for verbs whose first argument is one: the session of an id of another program, whose [name](format.md#names-and-ids) is made of it |
| \`--json\` | print one JSON document on stdout; errors as JSON on stderr |
| \`--jsonl\` | print JSON lines on stdout; errors as JSON on stderr |
| \`--format TEMPLATE\` | print each record of a list, or the one document, by a template of its fields, as with \`--jsonl\`: \`'{name} {children.open}'\`; \`{name}\` is the \`{session}\` of a record that has no other name; \`{{\` and \`}}\` are braces, \`\\t\` and \`\\n\` a tab and a line end; a field that a record does not have is an empty text; \`graph\` and \`import\` have another option of this name |
| \`--null\`, \`-0\` | with \`--quiet\` or \`--format\`: end each record with NUL in place of a line end, for \`xargs -0\` |
| \`--quiet\` | print ids only, and no status |
| \`--color WHEN\` | \`always\`, \`never\` (also \`--no-color\`) or \`auto\`: on a terminal, unless \`$NO_COLOR\` is set |
| \`--durability fast\` | do not wait for the disk: a power cut may lose the latest entries; default: \`full\` |
| \`--help\`, \`-h\` | show help for any verb, as \`tape help VERB\` does; \`tape help --all\` lists all verbs |
| \`--version\`, \`-v\` | print the version |`;

const errorsIntro = `An error is one or two lines on stderr: \`Error: …\`, and \`Hint: …\` if a next command is known. With \`--json\` or \`--jsonl\`
it is one line:

\`\`\`json
{"error":{"code":"TAPE_NO_SESSION","message":"cannot find session 'mian': no such name, alias or id","hint":"did you mean 'main'? All sessions: tape sessions","data":{"session":"mian","near":["main"]}}}
\`\`\`

\`hint\` is optional; \`data\` is always an object. Branch on the code or the exit code, never on the message.`;

function section(verb: Verb): string {
  const name = nameOf(verb);
  const options = declarations(verb);
  const also = (verb.aliases ?? []).map((alias) => ` Also \`tape ${alias}\`.`).join('');
  const grammar = options.some(({ positional }) => !positional) ? `${verb.command} [options]` : verb.command;
  const documented = contract[name];
  if (documented === undefined) throw new Error(`packages/cli/src/contract does not have '${name}'`);
  const ends = Object.entries(documented.exits).map(([code, why]) => `${code}: ${why}`);
  return [
    `### ${name}`,
    `\`\`\`\ntape ${grammar}\n\`\`\``,
    `${verb.summary}.${also}${verb.detail === undefined ? '' : ` ${verb.detail}`}`,
    ...(options.length === 0 ? [] : [table(['argument', 'meaning'], options.map(optionRow))]),
    `\`\`\`sh\n${verb.examples.map(([command, does]) => `# ${does}\n${command}`).join('\n')}\n\`\`\``,
    ...(documented.json.length === 0
      ? ['It has no JSON form.']
      : documented.json.map((form, i) => jsonForm(form, schemaOf(name, i)))),
    `\`--quiet\` prints ${documented.quiet}.`,
    ...(ends.length === 0 ? [] : [`Exit codes: ${ends.join('; ')}.`]),
  ].join('\n\n');
}

function optionRow({ name, positional, type, takes, describe, choices, default: value, required }: Declared) {
  const argument = choices?.join('|') ?? takes ?? argumentOf(type);
  const shown = positional ? name : `--${name}${argument === '' ? '' : ` ${argument}`}`;
  const more = [
    ...(required === true && !positional ? ['required'] : []),
    ...(type === 'list' ? ['may be repeated'] : []),
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
  if (object.anyOf !== undefined) return `${intro} It is ${object.anyOf.map(typeOf).join(' or ')}.`;
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
