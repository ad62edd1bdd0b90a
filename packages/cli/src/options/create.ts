/** The option of verbs that create the session that they name. */
export const createOptions = {
  new: { type: 'boolean', describe: 'Create the session also if one has nearly the same name' },
} as const;
