/** Build metadata in the version of an embedded cluster, by which clients recognise it: `v1.34.4+portcullis`. */
export const EMBEDDED_BUILD = '+portcullis';
