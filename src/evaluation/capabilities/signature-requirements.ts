// The signatures that a payload of oci/v1/verify or oci/v2/verify requires, in the form of verification.yml.
import { certificateBytes } from '../../engine/capabilities/index.ts';
import { isJsonObject, type JsonObject, type JsonValue, own, valueAt } from '../../values/index.ts';
import {
  isGithubOwner,
  isGithubRepository,
  parsePublicKey,
  parseUrlPrefix,
  type SignatureRequirement,
} from '../../modules/index.ts';
import { certificateProblem, MAX_CHAIN_CERTIFICATES } from '../../modules/verify/index.ts';

/** Most required signatures, and most annotations, of one call. */
const MAX_ENTRIES = 100;

type Annotations = Pick<SignatureRequirement, 'annotations'>;

/**
 * All of these signatures are required.
 * @param variant such as `SigstorePubKeyVerify`
 * @throws Error whose message the guest gets
 */
export function signatureRequirements(variant: string, fields: JsonObject): readonly SignatureRequirement[] {
  const annotations = annotationsOf(own(fields, 'annotations'));
  switch (variant) {
    case 'SigstorePubKeyVerify':
      return listIn(fields, 'pub_keys').map((key, index) => ({
        kind: 'pubKey',
        key: keyOf(key, index),
        ...annotations,
      }));
    case 'SigstoreKeylessVerify':
      return listIn(fields, 'keyless').map((entry) => ({
        kind: 'genericIssuer',
        issuer: textIn(entry, 'issuer'),
        subject: { equal: textIn(entry, 'subject') },
        ...annotations,
      }));
    case 'SigstoreKeylessPrefixVerify':
      return listIn(fields, 'keyless_prefix').map((entry) => ({
        kind: 'genericIssuer',
        issuer: textIn(entry, 'issuer'),
        subject: { urlPrefix: prefixOf(textIn(entry, 'url_prefix')) },
        ...annotations,
      }));
    case 'SigstoreGithubActionsVerify':
      return [{ kind: 'githubAction', ...githubOf(fields), ...annotations }];
    case 'SigstoreCertificateVerify':
      return [certificateOf(fields, annotations)];
    default:
      throw new Error(
        'type: expected SigstorePubKeyVerify, SigstoreKeylessVerify, SigstoreKeylessPrefixVerify, SigstoreGithubActionsVerify or SigstoreCertificateVerify',
      );
  }
}

function keyOf(value: JsonValue, index: number): string {
  const key = typeof value === 'string' ? parsePublicKey(value) : undefined;
  if (key === undefined) {
    throw new Error(
      `pub_keys[${index}]: expected a PEM public key: ECDSA P-256, P-384 or P-521, Ed25519, or RSA from 2048 bits`,
    );
  }
  return key;
}

function prefixOf(text: string): string {
  const prefix = parseUrlPrefix(text);
  if (prefix === undefined) {
    throw new Error('url_prefix: expected the URL that subjects begin with, without credentials, query and fragment');
  }
  return prefix;
}

function githubOf(fields: JsonObject): { readonly owner: string; readonly repo?: string } {
  const owner = textIn(fields, 'owner');
  // Go's SDK writes an empty text for none.
  const repo = own(fields, 'repo') ?? '';
  if (!isGithubOwner(owner)) {
    throw new Error('owner: expected the name of a GitHub user or organization');
  }
  if (typeof repo !== 'string' || (repo !== '' && !isGithubRepository(repo))) {
    throw new Error('repo: expected the name of a GitHub repository, without its owner');
  }
  return repo === '' ? { owner } : { owner, repo };
}

function certificateOf(fields: JsonObject, annotations: Annotations): SignatureRequirement {
  const certificate = certificateBytes(own(fields, 'certificate'), 'certificate').toString('latin1');
  const list = own(fields, 'certificate_chain') ?? null;
  if (list !== null && (!Array.isArray(list) || list.length > MAX_CHAIN_CERTIFICATES)) {
    throw new Error(`certificate_chain: expected a list of at most ${MAX_CHAIN_CERTIFICATES} certificates`);
  }
  const chain = list?.map((one, index) => certificateBytes(one, `certificate_chain[${index}]`).toString('latin1'));
  const isLogRequired = own(fields, 'require_rekor_bundle');
  if (typeof isLogRequired !== 'boolean') {
    throw new Error('require_rekor_bundle: expected true or false');
  }
  const problem = certificateProblem(certificate, chain);
  if (problem !== undefined) {
    throw new Error(problem);
  }
  return { kind: 'certificate', certificate, isLogRequired, ...annotations };
}

function annotationsOf(value: JsonValue | undefined): Annotations {
  if (value === undefined || value === null) {
    return {};
  }
  const entries = Object.entries(isJsonObject(value) ? value : { '': null });
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  if (texts.length < entries.length || entries.length > MAX_ENTRIES) {
    throw new Error(`annotations: expected an object of at most ${MAX_ENTRIES} texts`);
  }
  return { annotations: Object.fromEntries(texts) };
}

function listIn(fields: JsonObject, key: string): readonly JsonValue[] {
  const value = own(fields, key);
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ENTRIES) {
    throw new Error(`${key}: expected a list of 1 to ${MAX_ENTRIES} entries`);
  }
  return value;
}

function textIn(entry: JsonValue, key: string): string {
  const value = valueAt(entry, key);
  if (typeof value !== 'string' || value === '') {
    throw new Error(`${key}: expected text`);
  }
  return value;
}
