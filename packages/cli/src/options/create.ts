/** The option of verbs that create the session that they name. */
export const createOptions = {
  new: {
    type: 'boolean',
    describe:
      'Create the session also if its name is the beginning of another, or a slip of one (tape help points)',
  },
} as const;
