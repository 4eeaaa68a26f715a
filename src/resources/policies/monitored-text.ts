import type { MonitoredRequest, MonitoredStatus } from '../kind-declarations/common-schemas.ts';

/** What a policy in monitor mode would have rejected, with the newest request, as a part of a sentence. */
export function monitoredText({ count, since, revision, last: [newest] }: MonitoredStatus): string {
  const total = `revision ${revision} would have rejected ${count} ${count === 1 ? 'request' : 'requests'} since ${since}`;
  return newest === undefined ? total : `${total}; the last: ${requestText(newest)}`;
}

function requestText({ operation = '', kind = '', namespace, name = '', user, message }: MonitoredRequest): string {
  const object = namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
  const request = [operation, kind, object].filter((text) => text !== '').join(' ') || 'a raw request';
  const by = user === undefined || user === '' ? '' : ` by ${user}`;
  return `${request}${by}${message === undefined || message === '' ? '' : `: ${message}`}`;
}
