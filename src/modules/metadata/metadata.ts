import type { ContextAwareResource } from '../../resources/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { customSections, withCustomSection } from './custom-section.ts';
import { ModuleError } from '../reference/errors.ts';
import { EXECUTION_MODES, requireSupportedMode } from './execution-mode.ts';
import type { ExecutionMode } from './execution-mode.ts';
import { MetadataReader } from './field-reader.ts';
import { readRule } from './policy-rule.ts';
import type { MetadataRule } from './policy-rule.ts';

/** Name of the custom section that holds a policy's metadata, as JSON. */
export const METADATA_SECTION = 'io.kubewarden.metadata';

/** Largest metadata: that of published policies, README included, has about 20 KiB. */
export const METADATA_LIMIT_BYTES = 1024 * 1024;

/** The version of Kubewarden's policy interface that this server implements. */
const SUPPORTED_KUBEWARDEN_VERSION = { major: 1, minor: 37 } as const;

/** The metadata of a policy. Unknown keys are ignored. */
export interface PolicyMetadata {
  /** Version of the waPC protocol. */
  readonly protocolVersion?: string;
  readonly rules: readonly MetadataRule[];
  /** Title, description, author and others by their well-known keys (`io.kubewarden.policy.…`). */
  readonly annotations: Readonly<Record<string, string>>;
  /** Whether the policy changes objects. Default: false. */
  readonly mutating: boolean;
  /** Whether audits of existing objects evaluate the policy. Default: true. */
  readonly backgroundAudit: boolean;
  /** Default: the mode that the module's imports and exports imply. */
  readonly executionMode?: ExecutionMode;
  /** Whether requests are admission reviews or arbitrary JSON. Default: `kubernetes`. */
  readonly policyType: 'kubernetes' | 'raw';
  readonly contextAwareResources: readonly ContextAwareResource[];
  /** Host capabilities that the policy uses, as patterns. */
  readonly hostCapabilities: readonly string[];
  /** The oldest version of Kubewarden that the policy runs on. */
  readonly minimumKubewardenVersion?: string;
}

const PROTOCOL_VERSION = 'v1';
const VERSION = /^v?(\d{1,9})\.(\d{1,9})(\.\d+)?([-+][\w.+-]*)?$/;

/**
 * The metadata of a module; undefined when it has none.
 * @throws ModuleError `metadata-invalid`, `not-wasm`
 */
export function readMetadata(bytes: Uint8Array): PolicyMetadata | undefined {
  const [section, ...more] = customSections(bytes, METADATA_SECTION);
  if (section === undefined) {
    return undefined;
  }
  if (more.length > 0) {
    throw invalid(`expected one section ${METADATA_SECTION}, got ${more.length + 1}: annotate the module again`);
  }
  if (section.length > METADATA_LIMIT_BYTES) {
    throw invalid(`expected at most ${METADATA_LIMIT_BYTES} bytes, got ${section.length}`);
  }
  return parseMetadata(decodeJson(section));
}

/**
 * A copy of the module with this metadata in place of its own.
 * @throws ModuleError `metadata-invalid` when it could not be read again, `not-wasm`
 */
export function writeMetadata(bytes: Uint8Array, metadata: PolicyMetadata): Uint8Array {
  const section = new TextEncoder().encode(JSON.stringify(parseMetadata(metadata)));
  if (section.length > METADATA_LIMIT_BYTES) {
    throw invalid(`expected at most ${METADATA_LIMIT_BYTES} bytes, got ${section.length}`);
  }
  return withCustomSection(bytes, METADATA_SECTION, section);
}

/**
 * Checks metadata field by field; it comes from a module or from a `metadata.yml`.
 * @throws ModuleError `metadata-invalid`, `execution-mode-unsupported`
 */
export function parseMetadata(value: unknown): PolicyMetadata {
  const root = new MetadataReader(value, '');
  const protocolVersion = root.field('protocolVersion').optional((field) => field.string());
  const executionMode = root.field('executionMode').optional(readExecutionMode);
  const minimumKubewardenVersion = root.field('minimumKubewardenVersion').optional(readVersion);
  return {
    ...(protocolVersion === undefined ? {} : { protocolVersion }),
    rules: root.field('rules').list(readRule),
    annotations: root.field('annotations').stringMap(),
    mutating: root.field('mutating').optional((field) => field.boolean()) ?? false,
    backgroundAudit: root.field('backgroundAudit').optional((field) => field.boolean()) ?? true,
    ...(executionMode === undefined ? {} : { executionMode }),
    policyType: root.field('policyType').optional((field) => field.oneOf(['kubernetes', 'raw'])) ?? 'kubernetes',
    contextAwareResources: root.field('contextAwareResources').list((item) => ({
      apiVersion: item.field('apiVersion').nonEmptyString(),
      kind: item.field('kind').nonEmptyString(),
    })),
    hostCapabilities: root.field('hostCapabilities').list((item) => item.nonEmptyString()),
    ...(minimumKubewardenVersion === undefined ? {} : { minimumKubewardenVersion }),
  };
}

function readExecutionMode(field: MetadataReader): ExecutionMode {
  requireSupportedMode(field.string());
  return field.oneOf(EXECUTION_MODES);
}

/**
 * Refuses a waPC module that does not state protocol version v1. Other modes have no protocol version.
 * @throws ModuleError `protocol-unsupported`
 */
export function requireProtocol(metadata: PolicyMetadata | undefined): void {
  const version = metadata?.protocolVersion;
  if (version !== PROTOCOL_VERSION) {
    const got = metadata === undefined ? 'a module without metadata' : JSON.stringify(version ?? null);
    throw new ModuleError(
      'protocol-unsupported',
      `expected a module whose metadata has protocolVersion "${PROTOCOL_VERSION}", got ${got}: ` +
        'is it a policy? If so, annotate it ("portcullis annotate")',
    );
  }
}

/**
 * Refuses a module that needs a newer Kubewarden than this server implements. Patch versions are not compared.
 * @throws ModuleError `version-unsupported`
 */
export function requireSupportedVersion(metadata: PolicyMetadata | undefined): void {
  const minimum = metadata?.minimumKubewardenVersion;
  if (minimum === undefined) {
    return;
  }
  const [, major = 0, minor = 0] = (VERSION.exec(minimum) ?? []).map(Number);
  const supported = SUPPORTED_KUBEWARDEN_VERSION;
  if (major > supported.major || (major === supported.major && minor > supported.minor)) {
    throw new ModuleError(
      'version-unsupported',
      `the policy needs Kubewarden ${minimum} or newer: expected at most ${supported.major}.${supported.minor}. ` +
        'Use an older version of the policy, or a newer one of this server',
    );
  }
}

function readVersion(field: MetadataReader): string {
  const text = field.string();
  if (!VERSION.test(text)) {
    throw field.error(`expected a version like 1.30.0, got ${JSON.stringify(text.slice(0, 100))}`);
  }
  return text;
}

function decodeJson(section: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(section));
  } catch (error) {
    const reason = errorText(error);
    throw new ModuleError('metadata-invalid', `the module's metadata is not valid JSON: ${reason}`, { cause: error });
  }
}

function invalid(message: string): ModuleError {
  return new ModuleError('metadata-invalid', `the module's metadata is invalid: ${message}`);
}
