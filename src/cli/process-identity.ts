// Who this process is, for others: its pod, its name, and the host of its control port.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { usageError } from './errors.ts';

/** Random bytes of the suffix that tells processes of one host apart. */
const SUFFIX_BYTES = 4;
/** Longest part of the host name: with the suffix, a DNS label of at most 63 characters. */
const MAX_HOST_LENGTH = 63 - 1 - 2 * SUFFIX_BYTES;
/** Wildcard addresses, which others cannot connect to. */
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

/** The pod of this process, from the downward API. */
export function owningPod(): { readonly name: string; readonly uid: string; readonly nodeName?: string } | undefined {
  const { POD_NAME: name = '', POD_UID: uid = '', NODE_NAME: nodeName = '' } = process.env;
  return name === '' || uid === '' ? undefined : { name, uid, ...(nodeName === '' ? {} : { nodeName }) };
}

/** A unique DNS label. @param fallback instead of the host's name if that has no usable character */
export function processName(fallback: string): string {
  const host = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, MAX_HOST_LENGTH)
    .replaceAll(/^-+|-+$/g, '');
  const suffix = randomBytes(SUFFIX_BYTES).toString('hex');
  return `${host === '' ? fallback : host}-${suffix}`;
}

/** @throws CliError when others cannot connect to the control port */
export function requireReachable(host: string, advertise: string | undefined): void {
  if (WILDCARDS.has(host) && (advertise === undefined || advertise === '')) {
    throw usageError(
      `--control-addr ${host} is not an address that others can connect to`,
      'Name the host that they reach it by with --control-advertise (in a pod: POD_IP in its environment).',
    );
  }
}
