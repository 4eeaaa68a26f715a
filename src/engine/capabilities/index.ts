// An entry of its own for the threads that answer host calls, and evaluate nothing.
export { AsyncCapabilities } from './async-capabilities.ts';
export { certificateBytes } from './certificate-bytes.ts';
export type { GetRequest, KubernetesReader, ListRequest } from './kubernetes.ts';
export type { ImageCall, ImageReader, ImageRequest } from './oci.ts';
export { LocalCapabilities } from './local-capabilities.ts';
export { ReplayPort, SessionRecorder } from './session.ts';
export type { HostCaller, HostPort, PolicyLog, PolicyLogEntry } from './host-port.ts';
