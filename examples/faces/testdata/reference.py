"""The pipeline of this example in PyTorch, over the same three archives. Prints the faces that main_test.go expects.

usage: python reference.py TESTDATA    (TESTDATA is the repository's testdata folder)
"""
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision.ops import nms

FACTOR, MIN_SIZE, THRESHOLDS = 0.709, 20, (0.6, 0.7, 0.7)


def load(data, name):
    return torch.export.load(os.path.join(data, "real-public", name, "model.pt2")).module()


def normalize(x):
    return (x - 127.5) / 128


def crop(image, box, size):
    h, w = image.shape[-2:]
    x0, y0, x1, y1 = (int(v) for v in box)
    x0, y0, x1, y1 = max(x0, 1), max(y0, 1), min(x1, w), min(y1, h)
    if x1 <= x0 or y1 <= y0:
        return torch.zeros(1, 3, size, size)
    return F.interpolate(image[:, :, y0 - 1 : y1, x0 - 1 : x1], size=(size, size), mode="area")


def square(boxes):
    w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    side = torch.maximum(w, h)
    x0, y0 = boxes[:, 0] + w / 2 - side / 2, boxes[:, 1] + h / 2 - side / 2
    return torch.stack([x0, y0, x0 + side, y0 + side], 1)


def move(boxes, reg, plus):
    w, h = boxes[:, 2] - boxes[:, 0] + plus, boxes[:, 3] - boxes[:, 1] + plus
    return torch.stack([boxes[:, 0] + reg[:, 0] * w, boxes[:, 1] + reg[:, 1] * h,
                        boxes[:, 2] + reg[:, 2] * w, boxes[:, 3] + reg[:, 3] * h], 1)


def proposals(pnet, image, scale):
    h, w = image.shape[-2:]
    x = normalize(F.interpolate(image, size=(int(h * scale + 1), int(w * scale + 1)), mode="area"))
    reg, prob = pnet(x)
    ys, xs = torch.nonzero(prob[0, 1] >= THRESHOLDS[0], as_tuple=True)
    at = torch.stack([xs, ys], 1).float()
    boxes = torch.cat([torch.floor((2 * at + 1) / scale), torch.floor((2 * at + 12) / scale)], 1)
    score, reg = prob[0, 1, ys, xs], reg[0, :, ys, xs].T
    keep = nms(boxes, score, 0.5)
    return boxes[keep], score[keep], reg[keep]


def main(data):
    pnet, rnet, onet = (load(data, "mtcnn-" + n) for n in ("pnet", "rnet", "onet"))
    rgb = np.array(Image.open(os.path.join(data, "grace_hopper.jpg")).convert("RGB"))
    image = torch.from_numpy(rgb).permute(2, 0, 1)[None].float()
    scale, found = 12 / MIN_SIZE, []
    while min(image.shape[-2:]) * scale >= 12:
        found.append(proposals(pnet, image, scale))
        scale *= FACTOR
    boxes, score, reg = (torch.cat(x) for x in zip(*found))
    keep = nms(boxes, score, 0.7)
    boxes = square(move(boxes[keep], reg[keep], 0))

    reg, prob = rnet(normalize(torch.cat([crop(image, b, 24) for b in boxes])))
    ok = prob[:, 1] > THRESHOLDS[1]
    boxes, score, reg = boxes[ok], prob[ok, 1], reg[ok]
    keep = nms(boxes, score, 0.7)
    boxes = square(move(boxes[keep], reg[keep], 1))

    reg, points, prob = onet(normalize(torch.cat([crop(image, b, 48) for b in boxes])))
    ok = prob[:, 1] > THRESHOLDS[2]
    boxes, score, reg, points = boxes[ok], prob[ok, 1], reg[ok], points[ok]
    w, h = boxes[:, 2:3] - boxes[:, 0:1] + 1, boxes[:, 3:4] - boxes[:, 1:2] + 1
    px, py = points[:, :5] * w + boxes[:, 0:1] - 1, points[:, 5:] * h + boxes[:, 1:2] - 1
    boxes = move(boxes, reg, 1)
    for i in nms(boxes, score, 0.7).tolist():
        print(json.dumps({"score": round(score[i].item(), 4), "box": [round(v, 2) for v in boxes[i].tolist()],
                          "points": [[round(a, 2), round(b, 2)] for a, b in zip(px[i].tolist(), py[i].tolist())]}))


with torch.no_grad():
    main(sys.argv[1])
