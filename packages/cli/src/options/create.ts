/** The option of verbs that create the session that they name. */
export const createOptions = {
  new: {
    type: 'boolean',
    describe: 'Create the session also if its name begins that of another, or is nearly one',
  },
} as const;
