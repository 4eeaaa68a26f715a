// Reads and writes the Secret of the CA. It holds the whole state of a rotation, so that the next leader can continue it.
import type { KubernetesObject, ObjectMeta } from '../../resources/index.ts';
import {
  bundleOf,
  isAuthority,
  isSigningKeyOf,
  type ParsedCertificate,
  parseCertificates,
} from './parsed-certificate.ts';
import { AUTHORITY_SECRET } from './certificate-names.ts';
import { phaseOf } from './certificate-plan.ts';
import { dataOf, isOurs, type Secret, SECRET_LABELS, withChanges, withTexts } from './secret.ts';

/** A new value requests a rotation of the CA. */
export const ROTATE_ANNOTATION = 'portcullis.dev/rotate';
/** The value of {@link ROTATE_ANNOTATION} when the last rotation started. */
const ROTATED_ANNOTATION = 'portcullis.dev/rotated';
/** The phase of the rotation, for users. */
const PHASE_ANNOTATION = 'portcullis.dev/rotation-phase';
/** When all Secrets and webhook configurations had the CAs of the phase. */
const SPREAD_ANNOTATION = 'portcullis.dev/rotation-spread-at';

/** Previous CAs that stay trusted. A bound for rotations in quick succession. */
const MAX_PREVIOUS = 4;

/** A CA with its key. */
export interface SigningAuthority {
  readonly certificate: ParsedCertificate;
  /** PEM. */
  readonly key: string;
}

/** The CAs of an installation. See `AuthorityState`. */
export interface Authority {
  /** The key is undefined if it was lost. */
  readonly current: { readonly certificate: ParsedCertificate; readonly key: string | undefined };
  readonly next?: SigningAuthority | undefined;
  readonly previous: readonly ParsedCertificate[];
  readonly spreadAt?: number | undefined;
  /** The last rotation request that was started. */
  readonly rotated?: string | undefined;
}

/** The content of the Secret of the CA. */
export type FoundAuthority =
  | { readonly kind: 'absent' }
  /** A Secret of another owner: it lacks our label. */
  | { readonly kind: 'foreign'; readonly secret: Secret }
  | { readonly kind: 'unusable'; readonly secret: Secret; readonly reason: string }
  | { readonly kind: 'usable'; readonly secret: Secret; readonly authority: Authority };

export function readAuthority(secret: Secret | undefined): FoundAuthority {
  if (secret === undefined) {
    return { kind: 'absent' };
  }
  if (!isOurs(secret)) {
    return { kind: 'foreign', secret };
  }
  const data = dataOf(secret);
  const current = authoritiesIn(data['tls.crt'])[0];
  if (current === undefined) {
    return { kind: 'unusable', secret, reason: 'tls.crt: expected the certificate of a CA' };
  }
  const key = data['tls.key'] ?? '';
  const next = authoritiesIn(data['next.crt'])[0];
  const nextKey = data['next.key'] ?? '';
  const isNextWhole = next !== undefined && isSigningKeyOf(nextKey, next);
  // A next CA whose key was lost may have issued certificates.
  const previous = [...(next === undefined || isNextWhole ? [] : [next]), ...authoritiesIn(data['previous.crt'])];
  const { [SPREAD_ANNOTATION]: spread = '', [ROTATED_ANNOTATION]: rotated } = secret.metadata.annotations ?? {};
  const spreadAt = Date.parse(spread);
  const authority: Authority = {
    current: { certificate: current, key: isSigningKeyOf(key, current) ? key : undefined },
    next: isNextWhole ? { certificate: next, key: nextKey } : undefined,
    previous: previous.slice(0, MAX_PREVIOUS),
    spreadAt: Number.isNaN(spreadAt) ? undefined : spreadAt,
    rotated,
  };
  return { kind: 'usable', secret, authority };
}

export function isRotationRequested({ metadata }: KubernetesObject, { rotated }: Authority): boolean {
  const request = metadata.annotations?.[ROTATE_ANNOTATION];
  return request !== undefined && request !== rotated;
}

/** All trusted CAs. */
export function trustedOf({ current, next, previous }: Authority): readonly ParsedCertificate[] {
  return [current.certificate, ...(next === undefined ? [] : [next.certificate]), ...previous];
}

/** The Secret with a CA in it. Keeps foreign data, labels and annotations of an existing Secret. */
export function authoritySecret(existing: Secret | undefined, namespace: string, authority: Authority): Secret {
  const { current, next, spreadAt, rotated } = authority;
  const previous = authority.previous.slice(0, MAX_PREVIOUS);
  const texts: Readonly<Record<string, string | undefined>> = {
    'ca.crt': bundleOf(trustedOf({ ...authority, previous })),
    'tls.crt': current.certificate.pem,
    'tls.key': current.key,
    'next.crt': next?.certificate.pem,
    'next.key': next?.key,
    'previous.crt': previous.length === 0 ? undefined : bundleOf(previous),
  };
  const annotations: Readonly<Record<string, string | undefined>> = {
    [PHASE_ANNOTATION]: phaseOf({ next: next?.certificate, previous }),
    [SPREAD_ANNOTATION]: spreadAt === undefined ? undefined : new Date(spreadAt).toISOString(),
    [ROTATED_ANNOTATION]: rotated,
  };
  const metadata: ObjectMeta = existing?.metadata ?? { namespace, name: AUTHORITY_SECRET };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: existing?.type ?? 'Opaque',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...SECRET_LABELS, 'app.kubernetes.io/component': 'controller' },
      annotations: withChanges(metadata.annotations ?? {}, annotations),
    },
    data: withTexts(existing ?? {}, texts),
  };
}

function authoritiesIn(text: string | undefined): readonly ParsedCertificate[] {
  return parseCertificates(text ?? '').filter(isAuthority);
}
