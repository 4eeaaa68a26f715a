export { JobThread, ThreadError } from './job-thread.ts';
export type { JobThreadOptions } from './job-thread.ts';
export { threadEnvironment } from './thread-environment.ts';
