// Validates PolicyServers beyond their schema.
import { isCertificate } from '../../modules/sources/index.ts';
import { parseQuantity, Quantity } from '../../cel/index.ts';
import { isCapabilityPattern } from '../../engine/index.ts';
import { forbidden, invalid, labelErrors, type PolicyServerObject, required } from '../../resources/index.ts';
import { dnsSubdomainProblems, qualifiedNameProblems } from '../../names/index.ts';
import { LARGEST_MODULE_MEBIBYTES } from '../grants/max-module-size.ts';
import { DEFAULT_PORTS, SERVICE_PORT } from '../policy-servers/policy-server-ports.ts';
import { unusedFields } from '../policy-servers/spec-support.ts';
import type { Findings } from './findings.ts';

type Spec = PolicyServerObject['spec'];

/** `host` or `host:port` of a module source. Host names of containers may have `_`. */
export const SOURCE_HOST = /^(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i;
export const SOURCE_HOST_EXPECTED =
  'expected a host with an optional port, such as "registry.example.com:5000", without scheme and path';
/** Names of environment variables (relaxed validation of k8s.io/apimachinery). */
const VARIABLE = /^[\x20-\x3C\x3E-\x7E]+$/;

export interface PolicyServerRulesOptions {
  /** Whether policy servers get the verification of signatures that their spec names. Default: true. */
  readonly appliesVerification?: boolean | undefined;
}

/** Checks a spec that is valid by the schema. */
export function checkPolicyServer(
  spec: Spec,
  findings: Findings,
  { appliesVerification = true }: PolicyServerRulesOptions = {},
): void {
  checkDisruption(spec, findings);
  checkNames(spec, findings);
  checkModuleSize(spec, findings);
  checkCapabilities(spec.namespacedPoliciesCapabilities ?? [], findings);
  checkPodMetadata(spec, findings);
  checkEnvironment(spec.env ?? [], findings);
  checkResources(spec, findings);
  checkPorts(spec, findings);
  checkSources(spec, findings);
  if (!appliesVerification) {
    refuseVerification(spec, findings);
  }
  warnOfUnsupported(spec, findings);
}

/** Warns of unsupported fields instead of rejecting them, so that manifests for Kubewarden can be applied. */
function warnOfUnsupported(spec: Spec, findings: Findings): void {
  for (const { field, message } of unusedFields(spec, 'that of Portcullis')) {
    findings.warn('not-supported', field, message);
  }
}

function checkDisruption(spec: Spec, findings: Findings): void {
  for (const field of ['minAvailable', 'maxUnavailable'] as const) {
    const value = spec[field];
    const isValid =
      value === undefined || (typeof value === 'number' ? value >= 0 : /^(?:[0-9]|[1-9][0-9]|100)%$/.test(value));
    if (!isValid) {
      const quotes = typeof value === 'string' && /^[0-9]+$/.test(value) ? ': write a number without quotes' : '';
      const detail = `expected a number of replicas from 0, or a percentage from "0%" to "100%"${quotes}`;
      findings.reject('disruption-amount', invalid(`spec.${field}`, value, detail));
    }
  }
}

/** Checks names of other objects, which may be created later. */
function checkNames(spec: Spec, findings: Findings): void {
  const fields = [
    'imagePullSecret',
    'serviceAccountName',
    'verificationConfig',
    'sigstoreTrustConfig',
    'priorityClassName',
  ] as const;
  for (const field of fields) {
    const name = spec[field];
    if (name !== undefined && name !== '') {
      const errors = dnsSubdomainProblems(name).map((problem) => invalid(`spec.${field}`, name, problem));
      findings.rejectAll('reference-name', errors);
    }
  }
  if (spec.image.trim() === '') {
    findings.reject('reference-name', required('spec.image', 'expected the container image of the policy server'));
  }
}

function checkModuleSize({ maxModuleSize }: Spec, findings: Findings): void {
  if (maxModuleSize !== undefined && Number.parseInt(maxModuleSize, 10) > LARGEST_MODULE_MEBIBYTES) {
    const detail = `expected at most "${LARGEST_MODULE_MEBIBYTES}Mi"`;
    findings.reject('module-size', invalid('spec.maxModuleSize', maxModuleSize, detail));
  }
}

function checkCapabilities(patterns: readonly string[], findings: Findings): void {
  for (const [index, pattern] of patterns.entries()) {
    if (!isCapabilityPattern(pattern)) {
      const detail =
        'expected "*", a prefix such as "oci/*" or "oci/v1/*", or the path of a capability such as "net/v1/dns_lookup_host"';
      findings.reject('capability-pattern', invalid(`spec.namespacedPoliciesCapabilities[${index}]`, pattern, detail));
    }
  }
}

function checkPodMetadata(spec: Spec, findings: Findings): void {
  findings.rejectAll('pod-metadata', labelErrors(spec.labels ?? {}, 'spec.labels'));
  for (const key of Object.keys(spec.annotations ?? {})) {
    // API servers too allow capital letters in keys of annotations.
    const problems = qualifiedNameProblems(key.toLowerCase());
    findings.rejectAll(
      'pod-metadata',
      problems.map((problem) => invalid('spec.annotations', key, problem)),
    );
  }
}

function checkEnvironment(env: NonNullable<Spec['env']>, findings: Findings): void {
  for (const [index, { name, value, valueFrom }] of env.entries()) {
    const path = `spec.env[${index}]`;
    if (name === '') {
      findings.reject('environment', required(`${path}.name`, 'expected the name of a variable'));
    } else if (!VARIABLE.test(name)) {
      findings.reject('environment', invalid(`${path}.name`, name, 'expected printable ASCII characters without "="'));
    }
    if (value !== undefined && value !== '' && valueFrom !== undefined && valueFrom !== null) {
      const detail = 'may not be specified when `value` is not empty: remove one of them';
      findings.reject('environment', forbidden(`${path}.valueFrom`, detail));
    }
  }
}

function checkResources({ limits = {}, requests = {} }: Spec, findings: Findings): void {
  const amounts = { limits: amountsOf(limits), requests: amountsOf(requests) };
  for (const [field, of] of Object.entries(amounts)) {
    for (const [name, amount] of of) {
      if (amount.sign < 0) {
        const detail = 'expected an amount that is not negative';
        findings.reject('resources', invalid(`spec.${field}[${name}]`, amount.toString(), detail));
      }
    }
  }
  for (const [name, request] of amounts.requests) {
    const limit = amounts.limits.get(name);
    if (limit !== undefined && request.compareTo(limit) > 0) {
      const detail = `expected at most the limit of ${limit.toString()}: lower it, or raise spec.limits[${name}]`;
      findings.reject('resources', invalid(`spec.requests[${name}]`, request.toString(), detail));
    }
  }
}

function amountsOf(amounts: Readonly<Record<string, string | number>>): ReadonlyMap<string, Quantity> {
  const read = Object.entries(amounts).map(([name, value]) => [name, parseQuantity(String(value))] as const);
  return new Map(read.filter((entry): entry is readonly [string, Quantity] => entry[1] instanceof Quantity));
}

/** `webhookPort` and `readinessProbePort` belong to one process, `metricsPort` to its Service. */
function checkPorts(spec: Spec, findings: Findings): void {
  const { webhookPort, readinessProbePort, metricsPort } = { ...DEFAULT_PORTS, ...spec };
  if (metricsPort === SERVICE_PORT) {
    const detail = 'expected another port: the Service uses this one for webhooks';
    findings.reject('ports', invalid('spec.metricsPort', metricsPort, detail));
  }
  if (readinessProbePort === webhookPort) {
    const detail = 'expected another port than spec.webhookPort';
    findings.reject('ports', invalid('spec.readinessProbePort', readinessProbePort, detail));
  }
}

function checkSources({ insecureSources = [], sourceAuthorities = {} }: Spec, findings: Findings): void {
  for (const [index, host] of insecureSources.entries()) {
    if (!SOURCE_HOST.test(host)) {
      findings.reject('source-host', invalid(`spec.insecureSources[${index}]`, host, SOURCE_HOST_EXPECTED));
    }
  }
  for (const [host, certificates] of Object.entries(sourceAuthorities)) {
    if (!SOURCE_HOST.test(host)) {
      findings.reject('source-host', invalid('spec.sourceAuthorities', host, SOURCE_HOST_EXPECTED));
    }
    for (const [index, pem] of certificates.entries()) {
      if (!isCertificate(pem)) {
        const field = `spec.sourceAuthorities[${host}][${index}]`;
        const detail =
          'expected a certificate in PEM, from "-----BEGIN CERTIFICATE-----" to "-----END CERTIFICATE-----"';
        findings.reject('source-authority', {
          reason: 'FieldValueInvalid',
          field,
          message: `Invalid value: ${detail}`,
        });
      }
    }
  }
}

/** Ignored fields would let modules run that they exclude. */
function refuseVerification(spec: Spec, findings: Findings): void {
  for (const field of ['verificationConfig', 'sigstoreTrustConfig'] as const) {
    const name = spec[field];
    if (name !== undefined && name !== '') {
      const detail =
        'this controller does not create policy servers, so the field would have no effect: give `portcullis serve` or `portcullis start` the flags --verification-path and --sigstore-trust-config instead';
      findings.reject('verification', forbidden(`spec.${field}`, detail));
    }
  }
}
