/** How much of a line a pattern of the configuration reads at once, so that its time grows with the text only. */
export const windowChars = 4096;
