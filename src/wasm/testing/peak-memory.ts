import { readFileSync } from 'node:fs';

const KIB = 1024;

/**
 * Peak of the resident memory of this process, in bytes. On Linux not that of `resourceUsage`, which begins with the memory of
 * the parent process.
 */
export function peakMemory(): number {
  if (process.platform !== 'linux') {
    return process.resourceUsage().maxRSS * KIB;
  }
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * KIB;
}
