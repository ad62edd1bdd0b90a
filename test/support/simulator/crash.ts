/** A simulated end of a process: thrown where it ends, and caught by the simulator alone. */
export class Crash extends Error {
  constructor(point: string) {
    super(point);
    this.name = 'Crash';
  }
}
