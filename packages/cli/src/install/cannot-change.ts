/** What is wrong with the text of a file that keeps it from being changed without a loss. */
export class CannotChange extends Error {}
