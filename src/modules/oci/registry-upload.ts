// The requests that push (https://github.com/opencontainers/distribution-spec, "Push").
import { type Digest, digestOf } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ProgressListener, TransferResponse } from '../http/http-transfer.ts';
import { redactUrl } from '../reference/module-reference.ts';
import type { RegistryClient } from './registry-client.ts';

/** Longest upload location: registries put their state into it, of at most some KiB. Characters. */
const MAX_LOCATION_LENGTH = 8192;

/**
 * Stores a blob, unless the repository has it. Resolves with whether it was sent.
 * @throws ModuleError `source-…`, `token-invalid`, `module-too-large`
 */
export async function uploadBlob(
  client: RegistryClient,
  bytes: Uint8Array,
  onSent?: ProgressListener,
): Promise<boolean> {
  const digest = digestOf(bytes);
  if (await hasBlob(client, digest)) {
    return false;
  }
  const started = await client.send({ target: 'blobs/uploads/', method: 'POST', body: Buffer.of() });
  if (started.response.statusCode !== 202) {
    throw await client.failure(started);
  }
  started.response.destroy();
  const stored = await client.send({
    target: uploadUrl(started, digest),
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: bytes,
    onSent,
  });
  await expectCreated(client, stored);
  return true;
}

/**
 * Stores a manifest under a tag or its digest. Resolves with whether the registry lists it as a referrer of its subject.
 * @throws ModuleError `source-…`, `token-invalid`, `digest-mismatch`
 */
export async function uploadManifest(
  client: RegistryClient,
  reference: string,
  bytes: Uint8Array,
  mediaType: string,
): Promise<boolean> {
  const headers = { 'content-type': mediaType };
  const answer = await client.send({ target: `manifests/${reference}`, method: 'PUT', headers, body: bytes });
  await expectCreated(client, answer);
  const stored = answer.response.headers['docker-content-digest'];
  const digest = digestOf(bytes);
  if (stored !== undefined && stored !== digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${answer.url.host} stored another manifest than it was sent: expected ${digest}. Is there a proxy that changes content?`,
    );
  }
  return answer.response.headers['oci-subject'] !== undefined;
}

/** False also for a registry that does not support the check: it gets the blob again. */
async function hasBlob(client: RegistryClient, digest: Digest): Promise<boolean> {
  const answer = await client.send({ target: `blobs/${digest}`, method: 'HEAD' });
  const { statusCode = 0 } = answer.response;
  if (statusCode === 401 || statusCode === 403 || statusCode === 429 || statusCode >= 500) {
    throw await client.failure(answer);
  }
  answer.response.destroy();
  return statusCode === 200;
}

async function expectCreated(client: RegistryClient, answer: TransferResponse): Promise<void> {
  if (answer.response.statusCode !== 201) {
    throw await client.failure(answer);
  }
  answer.response.destroy();
}

/** Where the content goes: a URL that the registry names, which may be of another server. */
function uploadUrl({ response, url }: TransferResponse, digest: Digest): URL {
  const { location = '' } = response.headers;
  const target = location.length > MAX_LOCATION_LENGTH || location === '' ? null : URL.parse(location, url.href);
  const shown = `${url.host} names no place for the upload`;
  if (target === null) {
    throw new ModuleError(
      'source-redirect',
      `${shown}: expected a header Location with a URL of at most ${MAX_LOCATION_LENGTH} characters`,
    );
  }
  if (target.protocol !== 'https:' && target.protocol !== url.protocol) {
    throw new ModuleError(
      'source-redirect',
      `${shown} that is allowed (${redactUrl(target.href)}): expected to stay on https. If a proxy in front of the registry ends TLS, tell the registry its own address`,
    );
  }
  // Appended as text: parsing the query would write its signature in another way.
  target.search += `${target.search === '' ? '?' : '&'}digest=${encodeURIComponent(digest)}`;
  return target;
}
