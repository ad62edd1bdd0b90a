/** The variable of the environment that names the directory that temp-in-memory.ts made. */
export const memoryVariable = 'TAPEDECK_TEST_MEMORY';

/** Of a project with this file of set-up, the temporary files are in memory, and those of the processes that it starts. */
const { [memoryVariable]: dir } = process.env;
if (dir !== undefined) process.env.TMPDIR = dir;
