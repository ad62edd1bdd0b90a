import { type OpenSpan, openSpan } from './span.ts';

/** The spans of the steps of a run: a model call, and the calls of tools that it asks for. One is open at a time. */
export class Steps {
  #open: OpenSpan | undefined;

  /** Ends the step, and begins the next. */
  async begin(step: number): Promise<void> {
    this.end();
    this.#open = await openSpan({ name: `step ${step}`, attributes: { 'tapedeck.step': step } });
  }

  async within<T>(act: () => Promise<T>): Promise<T> {
    return this.#open === undefined ? await act() : await this.#open.within(act);
  }

  fail(error: unknown): void {
    this.#open?.fail(error);
  }

  end(): void {
    this.#open?.end();
    this.#open = undefined;
  }
}
