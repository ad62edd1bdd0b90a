import type { Inherit, JsonObject } from '@tapedeck/tape';
import type { FlexibleSchema } from 'ai';
import { jsonInput } from '../tools/json-input.ts';

/** A task, as a model describes it in a call. */
export interface TaskInput {
  readonly task: string;
  readonly context_summary?: string;
  readonly resume?: string;
  readonly tools?: readonly string[];
  readonly output_schema?: JsonObject;
}

/** The arguments of the delegate tool. */
export interface DelegateInput {
  readonly tasks: readonly TaskInput[];
  readonly inherit?: Inherit;
  readonly background?: boolean;
  readonly trigger_on_complete?: 'notify_parent';
}

/** The arguments of the tool that sends a message. */
export interface MessageInput {
  readonly to: string;
  readonly message: string;
}

const task = {
  type: 'object',
  properties: {
    task: {
      type: 'string',
      minLength: 1,
      description: 'The task, with everything needed to do it, and what to report',
    },
    context_summary: { type: 'string', description: 'Background that the child should know' },
    resume: {
      type: 'string',
      description: 'Name of a child that you started before, to continue instead of a new one',
    },
    tools: {
      type: 'array',
      items: { type: 'string' },
      description: 'Names of the tools that the child may use (default: all of yours)',
    },
    // Without `propertyNames`, for which OpenAI's packages warn on stderr at every call.
    output_schema: {
      type: 'object',
      properties: {},
      additionalProperties: {},
      description: 'JSON Schema of the result, if it must be structured',
    },
  },
  required: ['task'],
};

export const delegateInput: FlexibleSchema<DelegateInput> = jsonInput({
  type: 'object',
  properties: {
    tasks: {
      type: 'array',
      minItems: 1,
      items: task,
      description: 'Each task starts one child; the children run in parallel',
    },
    inherit: {
      anyOf: [
        { type: 'string', enum: ['all', 'nothing'] },
        {
          type: 'object',
          properties: { since: { type: 'string', description: 'Name of an anchor' } },
          required: ['since'],
          additionalProperties: false,
        },
        {
          type: 'object',
          properties: { last: { type: 'integer', minimum: 1, description: 'Number of messages' } },
          required: ['last'],
          additionalProperties: false,
        },
      ],
      description:
        'How much of this conversation the children see: all of it (default), nothing but their tasks, the messages since an anchor, or the last messages',
    },
    background: { type: 'boolean', description: 'True: do not wait; the results arrive as messages' },
    trigger_on_complete: {
      type: 'string',
      const: 'notify_parent',
      description: 'With background: each result starts a new turn of yours',
    },
  },
  required: ['tasks'],
});

export const messageInput: FlexibleSchema<MessageInput> = jsonInput({
  type: 'object',
  properties: {
    to: {
      type: 'string',
      minLength: 1,
      description: '"manager" for the agent that started you, or the name of a child that you started',
    },
    message: { type: 'string', minLength: 1 },
  },
  required: ['to', 'message'],
});
