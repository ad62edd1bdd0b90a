/** A configuration whose tool says whether the errors of its session are those of the packages that it imports. */
export const oneCopyConfig = `import { SessionError } from '@tapedeck/runtime';
import { z } from 'zod';

export default {
  tools: {
    whose: {
      description: 'Waits for its own session, which is refused',
      inputSchema: z.object({}),
      execute: async (_, { context }) => {
        try {
          await context.session.idle();
          return 'no error';
        } catch (error) {
          return error instanceof SessionError ? 'one copy' : 'two copies';
        }
      },
    },
  },
};
`;

/** The answers of a model that calls the tool. */
export const oneCopyAnswers: readonly unknown[] = [
  { toolCalls: [{ name: 'whose', input: {} }] },
  { text: 'Done.' },
];
