// Folders of images, a folder a class, and images in files whose labels are known otherwise.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { HostTensor } from '../../io/host.ts';
import { datasetOf, type Dataset } from '../dataset.ts';
import { scalar } from '../item.ts';
import { imageOf, imageTable, type ImageOptions } from './image.ts';
import { aSource, isNode, type FileSource } from './source.ts';

/** An image, u8 [channels, height, width], and its class, i32. */
export interface LabelledImage {
  readonly image: HostTensor<'u8'>;
  readonly label: HostTensor<'i32'>;
}

/** A file of an image, and its class. */
export interface ImageFile {
  readonly file: FileSource;
  readonly label: number;
}

const imageFile: arg.Kind<ImageFile> = arg.settings<ImageFile>({ file: aSource, label: arg.count(0) }, [
  'file',
  'label',
]);
const takesFiles = arg.takes<typeof imageFiles>(
  ['the files', arg.listOf(imageFile)],
  ['options', arg.options<ImageOptions>(imageTable)],
);

/** A dataset of images in files. Each is read and decoded when it is asked for. */
export function imageFiles(files: readonly ImageFile[], options: ImageOptions = {}): Dataset<LabelledImage> {
  takesFiles('imageFiles', files, options);
  const own = [...files];
  return datasetOf('imageFiles', own.length, async (index) => {
    const { file, label } = own[index] as ImageFile;
    return { image: await imageOf('imageFiles', file, options), label: scalar(label, 'i32') };
  });
}

/** A dataset of images whose classes are folders. */
export interface ImageFolder extends Dataset<LabelledImage> {
  /** The names of the folders, in the order of the labels. */
  readonly classes: readonly string[];
  /** The paths of the images, in the order of the items. */
  readonly files: readonly string[];
}

const aFolder: arg.Kind<string | URL> = arg.kind(
  'the path of a folder',
  (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
);
const takesFolder = arg.takes<typeof imageFolder>(
  ['the folder', aFolder],
  ['options', arg.options<ImageOptions>(imageTable)],
);

/**
 * The PNG and JPEG images in the folders of a folder, a folder a class; classes and images in the
 * order of their names. In Node; a page has no folders: `imageFiles`.
 */
export async function imageFolder(folder: string | URL, options: ImageOptions = {}): Promise<ImageFolder> {
  takesFolder('imageFolder', folder, options);
  if (!isNode())
    throw new TensorError('E_UNSUPPORTED', 'imageFolder', 'a page has no folders', 'imageFiles([…])');
  const { filesByFolder } = await import('./node.ts');
  const { names, files } = await filesByFolder(folder, ['.png', '.jpg', '.jpeg']).catch((cause: unknown) => {
    const error = new TensorError('E_IO', 'imageFolder', `${String(folder)}: ${(cause as Error).message}`);
    error.cause = cause;
    throw error;
  });
  if (files.length === 0) {
    const problem = `${String(folder)} has no PNG or JPEG images in folders of their classes`;
    throw new TensorError('E_VALUE', 'imageFolder', problem);
  }
  const labelled = files.map(({ path, name }) => ({ file: path, label: names.indexOf(name) }));
  const images = imageFiles(labelled, options);
  return { ...images, classes: names, files: files.map(({ path }) => path) };
}
