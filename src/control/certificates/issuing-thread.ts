// Entry of the thread that issues certificates: it ends with the library for them, which takes a process 20 MiB.
import { workerData } from 'node:worker_threads';
import { issueLocalCertificates } from './issue-local-certificates.ts';
import type { LocalCertificates } from './local-certificates.ts';

await issueLocalCertificates(workerData as LocalCertificates);
