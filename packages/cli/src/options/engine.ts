/** The option of every verb that can start children. */
export const engineOptions = {
  engine: {
    type: 'string',
    choices: ['embedded', 'pg-boss'],
    describe:
      'pg-boss: children run in workers (tape worker) of a home on a server; embedded: in this process (default: embedded)',
  },
} as const;
