export { answerJobs } from './answer-jobs.ts';
export { JobThread, ThreadError } from './job-thread.ts';
export { OwnerQueue } from './owner-queue.ts';
export { endThread, endThreads } from './process-end.ts';
export { nativeThreadId, ownCpuMs, threadCpuMs } from './processor-time.ts';
export { runInBackground } from './thread-priority.ts';
export { startThread } from './start-thread.ts';
export { TimeSlice } from './time-slice.ts';
