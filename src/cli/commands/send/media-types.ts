/** Media types by the end of a file's name: those of IANA that people attach. */

const types: Readonly<Record<string, string>> = {
	'application/gzip': 'gz tgz',
	'application/json': 'json map',
	'application/msword': 'doc dot',
	'application/pdf': 'pdf',
	'application/rtf': 'rtf',
	'application/vnd.apple.keynote': 'keynote',
	'application/vnd.apple.numbers': 'numbers',
	'application/vnd.apple.pages': 'pages',
	'application/vnd.ms-excel': 'xls xlt',
	'application/vnd.ms-powerpoint': 'ppt pps pot',
	'application/vnd.oasis.opendocument.presentation': 'odp',
	'application/vnd.oasis.opendocument.spreadsheet': 'ods',
	'application/vnd.oasis.opendocument.text': 'odt',
	'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
	'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
	'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
	'application/x-7z-compressed': '7z',
	'application/x-bzip2': 'bz2',
	'application/x-tar': 'tar',
	'application/xml': 'xml xsd',
	'application/yaml': 'yaml yml',
	'application/zip': 'zip',
	'audio/mp4': 'm4a',
	'audio/mpeg': 'mp3',
	'audio/wav': 'wav',
	'image/gif': 'gif',
	'image/heic': 'heic',
	'image/jpeg': 'jpg jpeg jpe',
	'image/png': 'png apng',
	'image/svg+xml': 'svg',
	'image/tiff': 'tif tiff',
	'image/webp': 'webp',
	'text/calendar': 'ics ifb',
	'text/csv': 'csv',
	'text/html': 'html htm',
	'text/markdown': 'md markdown',
	'text/plain': 'txt text log conf ini diff patch',
	'text/tab-separated-values': 'tsv',
	'text/vcard': 'vcf vcard',
	'video/mp4': 'mp4 m4v',
	'video/quicktime': 'mov',
	'video/webm': 'webm',
};

const byEnd: ReadonlyMap<string, string> = new Map(
	Object.entries(types).flatMap(([type, ends]) => ends.split(' ').map((end) => [end, type] as const)),
);

/** `application/octet-stream` for what is not known, and for mails, which may not be in base64 under their own type. */
export function mediaTypeOf(name: string): string {
	const end = /\.([^.]{1,16})$/.exec(name)?.[1]?.toLowerCase() ?? '';
	return byEnd.get(end) ?? 'application/octet-stream';
}
