/** The options of every verb. */
export const commonOptions = {
  home: {
    type: 'string',
    takes: 'DIR',
    describe:
      'Tape home, or postgres://HOST/DATABASE (default: $TAPE_HOME, else the nearest .tape, else ~/.tape)',
  },
  base: {
    type: 'string',
    takes: 'NAME',
    describe: 'Realm of the session names (default: that of the home, else tape)',
  },
  id: {
    type: 'string',
    describe: 'Id of another program, in the place of the session: its session name is made of it',
  },
  json: { type: 'boolean', describe: 'Print one JSON document on stdout; errors as JSON on stderr' },
  jsonl: { type: 'boolean', describe: 'Print JSON lines on stdout; errors as JSON on stderr' },
  format: {
    type: 'string',
    takes: 'TEMPLATE',
    describe: "Print each record by a template of its JSON fields: '{name} {tokens}'",
  },
  null: { type: 'boolean', alias: '0', describe: 'End records with NUL, with --quiet or --format' },
  quiet: { type: 'boolean', describe: 'Print ids only, and no status' },
  color: {
    type: 'string',
    choices: ['auto', 'always', 'never'],
    negatable: true,
    describe: 'Colour the output; --no-color is never (default: auto, on a terminal without $NO_COLOR)',
  },
  durability: {
    type: 'string',
    choices: ['full', 'fast'],
    describe: 'fast: a power cut may lose the latest entries (default: full)',
  },
} as const;
