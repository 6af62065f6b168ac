/* Sparkle: answers from pictures - classes, boxes, masks, larger pictures, depths, embeddings - by the code of `sparkle run
 * --task` (docs/vision.md). C interface; vision.hpp wraps it for C++. Errors, handles, threads and the ABI are those of
 * sparkle.h. */
#ifndef SPARKLE_VISION_H
#define SPARKLE_VISION_H

#include "sparkle/sparkle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- pictures -------------------------------------------------------------------------------------------------------------- */

/* Pixels, decoded. */
typedef struct sparkle_picture sparkle_picture;
/* A JPEG, PNG, WebP, TIFF, BMP or PNM file, turned upright as its EXIF says, alpha composited over white; "-" is standard
 * input. SPARKLE_FILE_UNREADABLE, SPARKLE_BAD_FORMAT, SPARKLE_OUT_OF_MEMORY for more than 100 million pixels. */
SPARKLE_API sparkle_status sparkle_picture_read(const char* path, sparkle_picture** picture);
/* The same from memory, which is not needed afterwards. `name`: what errors call it; may be NULL. */
SPARKLE_API sparkle_status sparkle_picture_decode(const void* file, size_t bytes, const char* name, sparkle_picture** picture);
/* Pixels that are there already, copied: height x width, or height x width x channels (1 grey, 2 grey and alpha, 3 RGB, 4 RGB
 * and alpha) of SPARKLE_U8 or SPARKLE_U16. */
SPARKLE_API sparkle_status sparkle_picture_from_pixels(const sparkle_tensor* pixels, sparkle_picture** picture);
/* In pixels; 0 for NULL. */
SPARKLE_API int32_t sparkle_picture_width(const sparkle_picture* picture);
/* The same. */
SPARKLE_API int32_t sparkle_picture_height(const sparkle_picture* picture);
/* Height x width x channels of SPARKLE_U8, 1 grey or 3 RGB, to be released by the caller. */
SPARKLE_API sparkle_status sparkle_picture_pixels(const sparkle_picture* picture, sparkle_value** pixels);
/* As a PNG file. */
SPARKLE_API sparkle_status sparkle_picture_write(const sparkle_picture* picture, const char* path);
/* NULL is ignored. */
SPARKLE_API void sparkle_picture_release(sparkle_picture* picture);

/* -- tasks ----------------------------------------------------------------------------------------------------------------- */

/* Texts are those of the command's options (docs/vision.md); NULL: from the preset, and the preset from the model. */
typedef struct sparkle_vision_options {
  size_t size;              /* sizeof(sparkle_vision_options) */
  const char* task;         /* "classify", "detect", "segment", "upscale", "depth", "embed"; NULL: guessed from the outputs */
  const char* preset;       /* a name of --preset (docs/command.md): "imagenet", "yolox", "detr" ... */
  const char* fit;          /* "crop", "stretch", "letterbox", "none" */
  const char* color;        /* "rgb", "bgr", "grey" */
  const char* resize;       /* "320x240", or "256": the shorter side before cropping (--size) */
  const char* crop;         /* "224" or "320x240" */
  const char* scale;        /* "1/255" */
  const char* mean;         /* "0.5", or three with commas */
  const char* std;          /* the same */
  const char* pad_value;    /* of letterboxes: "114" */
  const char* labels;       /* a file with the names of classes, one a line; NULL: those in the model's file, if any */
  const char* const* names; /* names of classes instead of that file */
  size_t name_count;        /* of them */
  int32_t top;              /* classes of an answer; 0: 5 */
  float threshold;          /* boxes with a smaller score are left out; 0: 0.5, below 0: none are */
  float overlap;            /* of two boxes of a class that share more of their union the better one stays; 0: 0.45, below 0:
                             * of two that overlap at all */
  int32_t tile;         /* networks that enlarge pictures of any size: pixels of a tile's side; 0: 512, below 0: never cut */
  int32_t tile_overlap; /* pixels that neighbouring tiles share; 0: 8, below 0: none */
} sparkle_vision_options;

/* A model and what lies around it; may be used by any number of threads at once. */
typedef struct sparkle_vision sparkle_vision;
/* The session, which it keeps alive, is of a model with one input that takes a picture; the model's metadata say what it says
 * of itself. Where the model has one size of input the task is known from here on. What is guessed is logged as a note.
 * SPARKLE_BAD_INPUT where the model takes no picture, SPARKLE_BAD_USAGE for options that are not understood or do not fit, and
 * where the task cannot be guessed. options may be NULL. */
SPARKLE_API sparkle_status sparkle_vision_open(sparkle_session* session, const sparkle_vision_options* options,
                                               sparkle_vision** vision);
/* {"task": its name or null before the first picture of a model that leaves sizes open, "why": "guessed from ..." or "as asked
 * for", "preprocess": a line in words, with the words that it is a guess where it is one, "labels": [names of classes]}. */
SPARKLE_API sparkle_status sparkle_vision_describe(const sparkle_vision* vision, char** json);
/* The model's input alone, to be released by the caller: 1 x C x H x W or 1 x H x W x C, in the model's type. */
SPARKLE_API sparkle_status sparkle_vision_preprocess(const sparkle_vision* vision, const sparkle_picture* picture,
                                                     sparkle_value** input);

/* What was found in a picture. */
typedef struct sparkle_answer sparkle_answer;
/* Preprocesses, runs and reads the outputs; networks that enlarge pictures of any size do so in tiles. */
SPARKLE_API sparkle_status sparkle_vision_answer(sparkle_vision* vision, const sparkle_picture* picture,
                                                 sparkle_answer** answer);
/* The last of these alone: `outputs` are those of a run of the caller's on sparkle_vision_preprocess(picture), all of them in
 * the model's order. */
SPARKLE_API sparkle_status sparkle_vision_answer_outputs(sparkle_vision* vision, const sparkle_picture* picture,
                                                         const sparkle_tensor* outputs, size_t output_count,
                                                         sparkle_answer** answer);
/* NULL is ignored. */
SPARKLE_API void sparkle_vision_release(sparkle_vision* vision);

/* -- answers: texts are valid until the answer is released ------------------------------------------------------------------
 */

/* A class that was found. */
typedef struct sparkle_class {
  int64_t index;      /* its number */
  const char* label;  /* "" where nobody has named it */
  double probability; /* classify: of the class, 0 to 1; segment: the share of the pixels */
  float value;        /* classify: as the network gives it */
} sparkle_class;

/* An object that was found: corners in pixels of the picture. */
typedef struct sparkle_box {
  float x0;          /* left */
  float y0;          /* top */
  float x1;          /* right */
  float y1;          /* bottom */
  float score;       /* 0 to 1 */
  int32_t index;     /* of the class */
  const char* label; /* its name, or "" */
} sparkle_box;

/* "detect"; "" for NULL. */
SPARKLE_API const char* sparkle_answer_task(const sparkle_answer* answer);
/* "guessed from output 'boxes' 1x4420x4", "as asked for". */
SPARKLE_API const char* sparkle_answer_why(const sparkle_answer* answer);
/* classify: the best classes; segment: those in the mask, by number. */
SPARKLE_API size_t sparkle_answer_class_count(const sparkle_answer* answer);
/* Class `number`, from 0 on; SPARKLE_BAD_USAGE where there is none. */
SPARKLE_API sparkle_status sparkle_answer_class(const sparkle_answer* answer, size_t number, sparkle_class* found);
/* detect: best first. */
SPARKLE_API size_t sparkle_answer_box_count(const sparkle_answer* answer);
/* Box `number`, likewise. */
SPARKLE_API sparkle_status sparkle_answer_box(const sparkle_answer* answer, size_t number, sparkle_box* found);
/* To be released by the caller. segment: the class of each pixel, height x width of SPARKLE_U8, of SPARKLE_U16 where there are
 * classes above 255; upscale: the larger picture, height x width x channels of SPARKLE_U8; depth: the network's value for each
 * pixel, height x width of SPARKLE_F32; embed: one row of SPARKLE_F32. SPARKLE_BAD_USAGE for the others. */
SPARKLE_API sparkle_status sparkle_answer_tensor(const sparkle_answer* answer, sparkle_value** tensor);
/* What `sparkle run --task` writes as JSON. */
SPARKLE_API sparkle_status sparkle_answer_json(const sparkle_answer* answer, char** json);
/* The picture with boxes or the mask's colours and a legend, the larger picture, or depths as grey; of classes and embeddings
 * the picture itself. `picture`: the one that was answered from. */
SPARKLE_API sparkle_status sparkle_answer_draw(const sparkle_answer* answer, const sparkle_picture* picture,
                                               sparkle_picture** drawn);
/* Answers put together by the caller - boxes that are left of others, a mask that was changed - to be drawn. Classes are
 * numbered 0 to 65535. */
SPARKLE_API sparkle_status sparkle_answer_of_boxes(const sparkle_box* boxes, size_t count, sparkle_answer** answer);
/* `task`: "segment", "upscale" or "depth", `tensor`: as sparkle_answer_tensor gives it, `names` of classes. */
SPARKLE_API sparkle_status sparkle_answer_of_tensor(const char* task, const sparkle_tensor* tensor, const char* const* names,
                                                    size_t name_count, sparkle_answer** answer);
/* NULL is ignored. */
SPARKLE_API void sparkle_answer_release(sparkle_answer* answer);

#ifdef __cplusplus
}
#endif
#endif /* SPARKLE_VISION_H */
