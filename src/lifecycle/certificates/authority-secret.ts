// The CA as its Secret has it: what is in it can be read by the next leader, of whatever version.
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
import { changed, dataOf, isOurs, type Secret, SECRET_LABELS, withTexts } from './secret.ts';

/** Set to anything new by whoever wants another CA. */
export const ROTATE_ANNOTATION = 'portcullis.dev/rotate';
/** The last value of that which was acted on. */
const ROTATED_ANNOTATION = 'portcullis.dev/rotated';
/** Where the change of the CA is; for people. */
const PHASE_ANNOTATION = 'portcullis.dev/rotation-phase';
/** Since when everything in the API has what the phase brings. */
const SPREAD_ANNOTATION = 'portcullis.dev/rotation-spread-at';

/** CAs that may still be trusted because they have signed: more than that are not kept when changes come in a row. */
const MAX_PREVIOUS = 4;

/** A CA that can sign. */
export interface SigningAuthority {
  readonly certificate: ParsedCertificate;
  /** PEM. */
  readonly key: string;
}

/** The CAs of an installation. See `AuthorityState`. */
export interface Authority {
  /** Without a key where that is lost. */
  readonly current: { readonly certificate: ParsedCertificate; readonly key: string | undefined };
  readonly next?: SigningAuthority | undefined;
  readonly previous: readonly ParsedCertificate[];
  readonly spreadAt?: number | undefined;
  /** The last wish for another CA that was acted on. */
  readonly rotated?: string | undefined;
}

/** What the Secret of the CA is found to be. */
export type FoundAuthority =
  | { readonly kind: 'absent' }
  /** Somebody else's: it has the name, and not our label. */
  | { readonly kind: 'foreign'; readonly secret: Secret }
  | { readonly kind: 'unusable'; readonly secret: Secret; readonly reason: string }
  | { readonly kind: 'kept'; readonly secret: Secret; readonly authority: Authority };

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
  // A next one whose key is lost may have signed.
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
  return { kind: 'kept', secret, authority };
}

/** Whether somebody asks for another CA. */
export function isRotationAsked({ metadata }: KubernetesObject, { rotated }: Authority): boolean {
  const asked = metadata.annotations?.[ROTATE_ANNOTATION];
  return asked !== undefined && asked !== rotated;
}

/** All CAs that are to be trusted. */
export function trustedOf({ current, next, previous }: Authority): readonly ParsedCertificate[] {
  return [current.certificate, ...(next === undefined ? [] : [next.certificate]), ...previous];
}

/** The Secret with a CA in it. What others put into the one that is there stays. */
export function writtenAuthority(existing: Secret | undefined, namespace: string, authority: Authority): Secret {
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
      annotations: changed(metadata.annotations ?? {}, annotations),
    },
    data: withTexts(existing ?? {}, texts),
  };
}

function authoritiesIn(text: string | undefined): readonly ParsedCertificate[] {
  return parseCertificates(text ?? '').filter(isAuthority);
}
