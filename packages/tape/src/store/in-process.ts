/**
 * A group of methods as a store in this process has it: each method returns its value, and never a promise.
 */
export type InProcess<Group> = {
  readonly [Method in keyof Group]: Group[Method] extends (...args: infer Args) => infer Answer
    ? (...args: Args) => Exclude<Answer, PromiseLike<unknown> | AsyncIterable<unknown>>
    : Group[Method];
};
