/** The default namespace of Portcullis itself: of its revisions, replicas and leases. */
export const PRODUCT_NAMESPACE = 'portcullis';
